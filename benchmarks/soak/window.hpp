#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace soak {

/// Remembers which of the latest calls of one caller have run; they are numbered from 1. All zero
/// is the initial state. It stays usable if the process is killed at any point of mark(), so it may
/// lie in a file.
class RanWindow {
 public:
  static constexpr std::uint64_t kSize = 1 << 14;

  /// Returns false if this call has run before, or is older than any call that could be in flight.
  bool mark(std::uint64_t number) {
    if (number > highest_) {
      if (number - highest_ >= kSize) {
        bits_.fill(0);
      } else {
        for (std::uint64_t n = highest_ + 1; n <= number; ++n)
          word(n) &= ~bit(n);
      }
      highest_ = number;
    } else if (highest_ - number >= kSize || (word(number) & bit(number)) != 0) {
      return false;
    }
    word(number) |= bit(number);
    return true;
  }

 private:
  std::uint64_t& word(std::uint64_t n) { return bits_[static_cast<std::size_t>(n % kSize / 64)]; }
  static std::uint64_t bit(std::uint64_t n) { return std::uint64_t{1} << n % 64; }

  std::uint64_t highest_ = 0;
  std::array<std::uint64_t, kSize / 64> bits_{};
};

}  // namespace soak
