#pragma once

#include <exception>
#include <string>

#include "batchrpc/base/call_diagnostics.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/result.hpp"

namespace batchrpc {

/// What happened to the call that ended in this error, for people, in several lines (the last one
/// without its end): what became of it, with the times since it was made; which of the promises in
/// docs/reliability.md applied; and what to do. Of an error that is of no call, what it says of
/// itself. Error::story() has the same for programs. Thread-safe.
/// @{
[[nodiscard]] BATCHRPC_EXPORT std::string explain(const Error& error);
[[nodiscard]] BATCHRPC_EXPORT std::string explain(const std::exception_ptr& error);
template <class T>
[[nodiscard]] std::string explain(const Result<T>& result) {
  return explain(result.error());
}
/// @}

}  // namespace batchrpc
