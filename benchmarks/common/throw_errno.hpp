#pragma once

#include <cerrno>
#include <system_error>

namespace batchrpc_benchmarks {

/// Throws std::system_error of errno; `what` has failed.
[[noreturn]] inline void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace batchrpc_benchmarks
