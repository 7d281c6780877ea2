#pragma once

#include <exception>
#include <string>

#include "batchrpc/base/call_diagnostics.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/result.hpp"

namespace batchrpc {

/// Explains the call that ended in this error, for people, in several lines (the last without a
/// newline): what happened to it, with the times since the call; which promise of
/// docs/reliability.md applied; and what to do. For an error that belongs to no call, it returns
/// the error's own message. Error::diagnostics() has the same for programs. Thread-safe. @{
[[nodiscard]] BATCHRPC_EXPORT std::string explain(const Error& error);
[[nodiscard]] BATCHRPC_EXPORT std::string explain(const std::exception_ptr& error);
template <class T>
[[nodiscard]] std::string explain(const Result<T>& result) {
  return explain(result.error());
}
/// @}

}  // namespace batchrpc
