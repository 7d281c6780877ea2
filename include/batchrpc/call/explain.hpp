#pragma once

#include <exception>
#include <string>

#include "batchrpc/base/call_diagnostics.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/result.hpp"

namespace batchrpc {

/// Describes, for people, what happened to the call that ended in this error. The lines say what
/// became of the call, with the times since it was made, which of the promises in
/// docs/reliability.md applied, and what to do. The last line has no line break at its end. If the
/// error belongs to no call, the text is the error's own. Error::diagnostics() has the same for
/// programs. Thread-safe.
/// @{
[[nodiscard]] BATCHRPC_EXPORT std::string explain(const Error& error);
[[nodiscard]] BATCHRPC_EXPORT std::string explain(const std::exception_ptr& error);
template <class T>
[[nodiscard]] std::string explain(const Result<T>& result) {
  return explain(result.error());
}
/// @}

}  // namespace batchrpc
