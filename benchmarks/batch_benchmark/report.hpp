#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "batch_benchmark/options.hpp"
#include "common/interrupt.hpp"

namespace batch_benchmark {

/// What a section needs to run.
struct Run {
  const Options& options;
  std::ostream& out;  ///< for its table
  const batchrpc_examples::InterruptFlag& interrupts;
};

/// printf() into a string.
[[gnu::format(printf, 1, 2)]] std::string text_of(const char* format, ...);

/// One figure of several rounds: `median` and `rounds`.
nlohmann::json rounds_json(const std::vector<double>& values);
/// The median over the rounds of what `ours` is of `theirs` in the same round.
double median_ratio(const std::vector<double>& ours, const std::vector<double>& theirs);
/// " (met)" or " (missed)".
const char* verdict(bool met);

nlohmann::json machine_json();
nlohmann::json versions_json();
nlohmann::json settings_json(const Options& options);
/// One line on the machine and the versions, for people.
std::string head(const Options& options);

}  // namespace batch_benchmark
