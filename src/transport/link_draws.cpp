#include "transport/link_draws.hpp"

#include <algorithm>
#include <cmath>

namespace batchrpc::detail {
namespace {

// Between zero and one, both left out.
double draw_unit(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
}

}  // namespace

Duration draw_jitter(const LinkOptions& options, std::mt19937_64& random) {
  constexpr double kLongest = 1000;  // jitters: the tail ends somewhere
  if (options.jitter <= Duration::zero()) return Duration::zero();
  double jitters = 0;
  switch (options.jitter_shape) {
    case JitterShape::uniform:
      return Duration(
          std::uniform_int_distribution<Duration::rep>(0, options.jitter.count())(random));
    case JitterShape::exponential:
      jitters = -std::log(draw_unit(random));
      break;
    case JitterShape::log_normal:
      jitters = std::exp(std::normal_distribution<double>()(random));
      break;
  }
  return Duration(static_cast<Duration::rep>(static_cast<double>(options.jitter.count()) *
                                             std::min(jitters, kLongest)));
}

std::uint64_t draw_break(const LinkOptions& options, std::mt19937_64& random) {
  if (options.break_every == 0) return std::numeric_limits<std::uint64_t>::max();
  const double bytes = -std::log(draw_unit(random)) * static_cast<double>(options.break_every);
  return static_cast<std::uint64_t>(std::min(bytes, 0x1p62)) + 1;
}

std::size_t draw_rest(std::size_t bytes, std::mt19937_64& random) {
  if (bytes == 0) return 0;
  switch (random() % 3) {
    case 0:
      return 0;
    case 1:
      return bytes;
    default:
      return std::uniform_int_distribution<std::size_t>(0, bytes)(random);
  }
}

Duration time_for(std::uint64_t bytes, std::uint64_t rate) noexcept {
  if (rate == 0) return Duration::zero();
  return Duration(static_cast<Duration::rep>(
      std::ceil(static_cast<double>(bytes) * 1e9 / static_cast<double>(rate))));
}

}  // namespace batchrpc::detail
