#pragma once

#include <cstdlib>
#include <string_view>

namespace batchrpc::test {

/// How often a stress test repeats: `with_long` times in the long form of the tests
/// (scripts/test.sh --long).
inline int times(int normal, int with_long) {
  const char* const value = std::getenv("BATCHRPC_LONG_TESTS");
  return value != nullptr && std::string_view(value) == "1" ? with_long : normal;
}

}  // namespace batchrpc::test
