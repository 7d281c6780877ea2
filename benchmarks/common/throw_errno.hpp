#pragma once

#include <cerrno>
#include <system_error>

namespace batchrpc_benchmarks {

/// Throws a std::system_error with errno; `what` names the failed operation.
[[noreturn]] inline void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace batchrpc_benchmarks
