#include "common/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace batchrpc_examples {

namespace {

void check_not_empty(const std::vector<double>& values) {
  if (values.empty()) throw std::invalid_argument("statistics need at least one value");
}

double of_sorted(const std::vector<double>& sorted, double percent) {
  if (!(percent >= 0 && percent <= 100)) {
    throw std::invalid_argument("a percentile must be in [0, 100]");
  }
  const double position = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

}  // namespace

double percentile(std::vector<double> values, double percent) {
  return percentiles(std::move(values), {percent}).front();
}

std::vector<double> percentiles(std::vector<double> values, const std::vector<double>& percents) {
  check_not_empty(values);
  std::sort(values.begin(), values.end());
  std::vector<double> results;
  results.reserve(percents.size());
  for (const double percent : percents)
    results.push_back(of_sorted(values, percent));
  return results;
}

double median(std::vector<double> values) { return percentile(std::move(values), 50); }

double mean(const std::vector<double>& values) {
  check_not_empty(values);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace batchrpc_examples
