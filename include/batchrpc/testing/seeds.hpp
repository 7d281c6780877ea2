#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Thrown by for_each_seed(). Names the seed that failed, the failure, and the command that repeats
/// it. The exception of the test is nested in it.
class BATCHRPC_EXPORT SeedFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~SeedFailed() override;
};

/// Runs `test` with each of `count` seeds from `first` on, until one throws. The environment
/// overrides the arguments: BATCHRPC_FIRST_SEED=17 BATCHRPC_SEEDS=1 runs seed 17 alone.
///
/// If the test throws a std::exception, SeedFailed is thrown. Any other exception, such as a test
/// framework's own, is rethrown unchanged, and the seed and the command are written to standard
/// error. Throws std::invalid_argument when one of the variables is not a number.
BATCHRPC_EXPORT void for_each_seed(std::uint64_t first, std::uint64_t count,
                                   const std::function<void(std::uint64_t seed)>& test);

}  // namespace batchrpc
