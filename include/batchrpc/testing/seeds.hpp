#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Thrown by for_each_seed(): which seed failed, how, and the command that repeats it. What the
/// test has thrown is nested in it.
class BATCHRPC_EXPORT SeedFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~SeedFailed() override;
};

/// Runs `test` with each of `count` seeds from `first` on, until one fails, that is, throws. The
/// environment goes before the arguments: BATCHRPC_FIRST_SEED=17 BATCHRPC_SEEDS=1 runs seed 17
/// alone. A std::exception comes out as SeedFailed; of anything else, such as a test framework's
/// own, the seed and the command go to standard error, and it comes out as it is. Throws
/// std::invalid_argument when one of the variables is no number.
BATCHRPC_EXPORT void for_each_seed(std::uint64_t first, std::uint64_t count,
                                   const std::function<void(std::uint64_t seed)>& test);

}  // namespace batchrpc
