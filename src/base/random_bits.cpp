#include "base/random_bits.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace batchrpc {

RandomBits::RandomBits(std::uint64_t seed) {
  if (seed != 0) simulated_ = std::make_unique<std::mt19937_64>(seed);
}

std::uint64_t RandomBits::operator()() {
  if (simulated_) return (*simulated_)();
  if (left_ == 0) {
    static_assert(sizeof drawn_ <= 256, "the most that getentropy() gives at once");
    if (::getentropy(drawn_.data(), sizeof drawn_) != 0) {
      throw std::system_error(errno, std::generic_category(), "the system has no random bits");
    }
    left_ = drawn_.size();
  }
  std::uint64_t& next = drawn_[--left_];
  return std::exchange(next, 0);
}

}  // namespace batchrpc
