#pragma once

#include <algorithm>
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

/// `normal`, or a tenth of it under a sanitizer, which makes a test ten times slower. A tenth of
/// the load finds most errors.
constexpr int less_if_sanitized(int normal) {
  return BATCHRPC_TEST_ASAN || BATCHRPC_TEST_TSAN ? std::max(1, normal / 10) : normal;
}

/// times() of a test on one thread. Under a sanitizer a tenth.
inline int times_on_one_thread(int normal, int with_long) {
  return less_if_sanitized(times(normal, with_long));
}

/// The number of random programs that a test runs: 10^3 with other seeds in each run of CI, which
/// sets BATCHRPC_FIRST_SEED (for_each_seed()); 10^4 in the long form of the tests. BATCHRPC_SEEDS
/// overrides both.
inline std::uint64_t random_programs() { return static_cast<std::uint64_t>(times(1000, 10'000)); }

}  // namespace batchrpc::test
