#pragma once

#include <cstdint>

namespace call_benchmark {

/// What a floor's client sends first.
struct FloorHello {
  std::uint32_t request_bytes = 0;
  std::uint32_t reply_bytes = 0;
  std::uint32_t busy = 0;
};

}  // namespace call_benchmark
