#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// A source of random numbers that peers cannot predict: the system's random source. Not
/// thread-safe.
class BATCHRPC_EXPORT RandomBits {
 public:
  /// `seed`: for a simulation, whose runs repeat; 0: the system's random source.
  explicit RandomBits(std::uint64_t seed = 0);

  /// Returns 64 random bits.
  [[nodiscard]] std::uint64_t operator()();

 private:
  std::unique_ptr<std::mt19937_64> simulated_{};  // it is large, and programs have none
  std::array<std::uint64_t, 32> drawn_{};         // one system call draws as many
  std::size_t left_ = 0;
};

}  // namespace batchrpc
