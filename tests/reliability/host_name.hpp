#pragma once

#include <string>

namespace batchrpc::test {

/// Of a random program's node.
[[nodiscard]] inline std::string host_name(int host) { return "n" + std::to_string(host); }

}  // namespace batchrpc::test
