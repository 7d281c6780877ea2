#pragma once

#include <cstdint>
#include <vector>

namespace batchrpc_examples::ppo {

/// SplitMix64's mixing (Steele, Lea and Flood 2014): turns a number into random bits. All
/// randomness of the training is a function of a seed and of its progress, so there is no state to
/// save.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t number) noexcept {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t number) noexcept {
  return mix(mix(seed) ^ number);
}

/// Turns random bits into a number in [0, 1).
[[nodiscard]] constexpr double unit(std::uint64_t bits) noexcept {
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

/// The numbers 0 to size - 1 in an order that depends on the seed, the same with every standard
/// library.
std::vector<std::int64_t> shuffled(std::int64_t size, std::uint64_t seed);

}  // namespace batchrpc_examples::ppo
