#include "common/ticks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace batchrpc_examples {

namespace {

// The smallest of 1, 2 and 5 times a power of ten that is at least `step`.
double round_up(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int count, bool whole_numbers) {
  if (!std::isfinite(low) || !std::isfinite(high) || low > high || count < 2) {
    throw std::invalid_argument("no ticks for such a range");
  }
  if (low == high) {
    const double room = low == 0 ? 1 : std::abs(low) / 2;
    low -= room;
    high += room;
  }
  double step = round_up((high - low) / (count - 1));
  if (whole_numbers) step = std::max(step, 1.0);
  const double first = std::floor(low / step + 1e-9);
  const double last = std::ceil(high / step - 1e-9);
  std::vector<double> ticks;
  for (double i = first; i <= last; ++i)
    ticks.push_back(i == 0 ? 0 : i * step);
  return ticks;
}

std::string tick_label(double value, double step) {
  const double magnitude = std::floor(std::log10(step) + 1e-9);
  const int decimals = static_cast<int>(std::clamp(-magnitude, 0.0, 9.0));
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  std::string label = text;
  if (std::abs(value) >= 1e4) {
    const std::size_t begin = label.front() == '-' ? 1 : 0;
    const std::size_t point = std::min(label.find('.'), label.size());
    for (std::size_t i = point; i > begin + 3; i -= 3)
      label.insert(i - 3, 1, ',');
  }
  return label;
}

}  // namespace batchrpc_examples
