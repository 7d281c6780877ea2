#pragma once

#include <chrono>

namespace batchrpc_examples {

[[nodiscard]] inline double seconds_between(std::chrono::steady_clock::time_point begin,
                                            std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

[[nodiscard]] inline std::chrono::steady_clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace batchrpc_examples
