#pragma once

#include <chrono>

namespace batchrpc_examples {

[[nodiscard]] inline double seconds_between(std::chrono::steady_clock::time_point begin,
                                            std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace batchrpc_examples
