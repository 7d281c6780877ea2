#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "batch_benchmark/options.hpp"

namespace batch_benchmark {

/// The input of a section.
struct Run {
  const Options& options;
  std::ostream& out;  ///< for the section's table
  const batchrpc::InterruptFlag& interrupts;
};

/// printf() into a string.
[[gnu::format(printf, 1, 2)]] std::string text_of(const char* format, ...);

/// The values of several rounds, as `median` and `rounds`.
nlohmann::json rounds_json(const std::vector<double>& values);
/// The median over the rounds of the ratio `ours` / `theirs`.
double median_ratio(const std::vector<double>& ours, const std::vector<double>& theirs);
/// " (met)" or " (missed)".
const char* verdict(bool met);

nlohmann::json machine_json();
nlohmann::json versions_json();
nlohmann::json settings_json(const Options& options);
/// One line of text about the machine and the versions.
std::string head(const Options& options);

}  // namespace batch_benchmark
