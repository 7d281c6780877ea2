#pragma once

#include <string>

namespace batchrpc_examples {

/// Formats a count: "1 trainer", "2 trainers".
inline std::string counted(long long number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

}  // namespace batchrpc_examples
