#include "transport/tick_rate.hpp"

#include <algorithm>
#include <cmath>

namespace batchrpc::detail {
namespace {

constexpr double kDrift = 0.001;
constexpr double kReadingError = 100;  // ns, of two readings together
constexpr double kAnew = 1e9;          // ns: the length of the first measurement after a restart

bool is_close(double rate, double other, double share) noexcept {
  return std::abs(rate - other) <= other * share;
}

}  // namespace

bool TickRate::is_believed(double rate, std::uint64_t nanoseconds) const noexcept {
  const double error = kReadingError / static_cast<double>(nanoseconds);
  return rate_ == 0 || is_close(rate, rate_, kDrift + error_ + error) ||
         (other_ != 0 && is_close(rate, other_, kDrift + error));
}

std::uint64_t TickRate::take(const Reading& reading) noexcept {
  const auto a_second_later = [&] {
    return reading.ticks + static_cast<std::uint64_t>(rate_ == 0 ? 0 : kAnew / rate_);
  };
  if (last_.ticks == 0 || reading.ticks <= last_.ticks ||
      reading.nanoseconds <= last_.nanoseconds) {
    begin_anew(reading);
    return a_second_later();
  }
  const auto rate_since = [&](const Reading& begin) {
    return static_cast<double>(reading.nanoseconds - begin.nanoseconds) /
           static_cast<double>(reading.ticks - begin.ticks);
  };
  const double rate = rate_since(last_);
  if (!is_believed(rate, reading.nanoseconds - last_.nanoseconds)) {
    other_ = rate;
    begin_anew(reading);
    return a_second_later();
  }
  other_ = 0;
  last_ = reading;
  rate_ = rate_since(first_);
  error_ = kReadingError / static_cast<double>(reading.nanoseconds - first_.nanoseconds);
  return reading.ticks + (reading.ticks - first_.ticks);
}

}  // namespace batchrpc::detail
