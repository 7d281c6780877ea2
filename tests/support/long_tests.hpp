#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sanitizers.hpp"

namespace batchrpc::test {

/// The number of repetitions of a stress test: `with_long` in the long form of the tests
/// (scripts/test.sh --long).
inline int times(int normal, int with_long) {
  const char* const value = std::getenv("BATCHRPC_LONG_TESTS");
  return value != nullptr && std::string_view(value) == "1" ? with_long : normal;
}

/// The same for a test on one thread. Under a sanitizer a tenth, which finds most errors.
inline int times_on_one_thread(int normal, int with_long) {
  constexpr int kShare = BATCHRPC_TEST_ASAN || BATCHRPC_TEST_TSAN ? 10 : 1;
  return times(normal, with_long) / kShare;
}

/// The number of random programs that a test runs: 10^3 with other seeds in each run of CI, which
/// sets BATCHRPC_FIRST_SEED (for_each_seed()); 10^4 in the long form of the tests. BATCHRPC_SEEDS
/// overrides both.
inline std::uint64_t random_programs() { return static_cast<std::uint64_t>(times(1000, 10'000)); }

}  // namespace batchrpc::test
