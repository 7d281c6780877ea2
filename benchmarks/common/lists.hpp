#pragma once

#include <string_view>
#include <vector>

namespace batchrpc_benchmarks {

/// The parts of a command-line list such as "a,b,c". An empty text has one empty part.
inline std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace batchrpc_benchmarks
