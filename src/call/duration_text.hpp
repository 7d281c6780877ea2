#pragma once

#include <chrono>
#include <string>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// Formats a duration for people: "5 s" or "250 ms".
[[nodiscard]] inline std::string text_of(Duration duration) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return milliseconds % 1000 == 0 ? std::to_string(milliseconds / 1000) + " s"
                                  : std::to_string(milliseconds) + " ms";
}

}  // namespace batchrpc
