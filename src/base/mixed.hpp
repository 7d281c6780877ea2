#pragma once

#include <cstdint>

namespace batchrpc {

/// Mixes the bits of `number`, so that near numbers give unlike results, all different: the
/// finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
/// 2014).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t number) noexcept {
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9U;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebU;
  return number ^ (number >> 31);
}

/// The step between seeds of SplitMix64.
inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;

}  // namespace batchrpc
