#pragma once

#include <cstddef>

namespace batchrpc::detail {

inline constexpr std::size_t kThreadPlaces = 32;

/// A number below kThreadPlaces that the calling thread has, and no other until it ends; what it
/// wrote is seen by the thread that has it next. kThreadPlaces when others have all, and when the
/// thread's own objects have been destroyed already.
[[nodiscard]] std::size_t thread_place() noexcept;

}  // namespace batchrpc::detail
