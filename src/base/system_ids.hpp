#pragma once

#include <unistd.h>

#include <cstdint>

namespace batchrpc {

/// The operating system's ids of the process and of the calling thread. Each call asks the system
/// again, since a fork changes them; it takes some tens of nanoseconds.
/// @{
inline std::uint64_t process_number() noexcept { return static_cast<std::uint64_t>(::getpid()); }
inline std::uint64_t thread_number() noexcept { return static_cast<std::uint64_t>(::gettid()); }
/// @}

}  // namespace batchrpc
