#pragma once

#include <cstdlib>
#include <string_view>

#include "sanitizers.hpp"

namespace batchrpc::test {

/// How often a stress test repeats: `with_long` times in the long form of the tests
/// (scripts/test.sh --long).
inline int times(int normal, int with_long) {
  const char* const value = std::getenv("BATCHRPC_LONG_TESTS");
  return value != nullptr && std::string_view(value) == "1" ? with_long : normal;
}

/// The same for a test on one thread: a tenth under a sanitizer, which has seen most by then.
inline int times_on_one_thread(int normal, int with_long) {
  constexpr int kShare = BATCHRPC_TEST_ASAN || BATCHRPC_TEST_TSAN ? 10 : 1;
  return times(normal, with_long) / kShare;
}

}  // namespace batchrpc::test
