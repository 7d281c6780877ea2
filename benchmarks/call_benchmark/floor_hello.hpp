#pragma once

#include <cstdint>

namespace call_benchmark {

/// The first message of a floor's client.
struct FloorHello {
  std::uint32_t request_bytes = 0;
  std::uint32_t reply_bytes = 0;
  std::uint32_t busy = 0;
};

}  // namespace call_benchmark
