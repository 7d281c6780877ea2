#pragma once

#include <cstddef>

namespace batchrpc::detail {

inline constexpr std::size_t kThreadPlaces = 32;

/// A number below kThreadPlaces that belongs to the calling thread alone until it ends. The next
/// thread with this number sees what this one wrote. Returns kThreadPlaces if all numbers are
/// taken, or if the thread's own objects have been destroyed already.
[[nodiscard]] std::size_t thread_place() noexcept;

}  // namespace batchrpc::detail
