#include "env_benchmark/record.hpp"

#include <algorithm>

#include "common/statistics.hpp"

namespace env_benchmark {

using batchrpc_examples::median;

double median_free(const Record& record) { return median(record.free); }

Measured median_of(const std::vector<Measured>& rounds) {
  const auto of = [&](double Measured::*member) {
    std::vector<double> values;
    for (const Measured& round : rounds)
      values.push_back(round.*member);
    return median(values);
  };
  return {.steps_per_second = of(&Measured::steps_per_second),
          .messages_per_second = of(&Measured::messages_per_second),
          .driver_cpus = of(&Measured::driver_cpus)};
}

double efficiency(const Record& record, std::size_t variant) {
  return median_of(record.variants[variant]).steps_per_second / record.setting.ideal();
}

double of_free_lanes(const Record& record, std::size_t variant) {
  return median_of(record.variants[variant]).steps_per_second / median_free(record);
}

std::vector<double> rates_of(const std::vector<Measured>& rounds) {
  std::vector<double> rates;
  for (const Measured& round : rounds)
    rates.push_back(round.steps_per_second);
  return rates;
}

Spread spread_of(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return {.median = median(values), .half_range = (most - least) / 2};
}

}  // namespace env_benchmark
