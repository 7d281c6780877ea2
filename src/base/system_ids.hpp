#pragma once

#include <unistd.h>

#include <cstdint>

namespace batchrpc {

/// The system's numbers of the process and of the calling thread. Asked each time, since a fork
/// changes them: some tens of nanoseconds each.
/// @{
inline std::uint64_t process_number() noexcept { return static_cast<std::uint64_t>(::getpid()); }
inline std::uint64_t thread_number() noexcept { return static_cast<std::uint64_t>(::gettid()); }
/// @}

}  // namespace batchrpc
