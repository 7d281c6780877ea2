#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "tensor_benchmark/options.hpp"
#include "tensor_benchmark/sample.hpp"
#include "tensor_benchmark/shape.hpp"

namespace tensor_benchmark {

/// One figure: the case, the side measured, and its results.
struct Row {
  Case which{};
  bool floor = false;  ///< else batchrpc
  Receive receive = Receive::fresh;

  std::vector<double> gb_per_s{};       ///< one per round
  std::vector<double> p50_us{};         ///< one per round
  std::vector<CpuTime> cpu_s_per_gb{};  ///< one per round
  std::vector<Sides> fresh_pages{};     ///< per call; one per round
  std::vector<double> us{};             ///< of all calls of all rounds
  std::optional<Sides> copies{};        ///< of the payload, per call
};

/// A row's ratio to the floor: medians over the rounds of ours / floor's.
struct Ratio {
  double gb_per_s = 0;  ///< higher is better
  double p50 = 0;       ///< lower is better
  double cpu = 0;       ///< of both sides together; lower is better
};
Ratio ratio(const Row& row, const Row& floor);

/// The medians over the rounds, for each side.
CpuTime median_cpu(const Row& row);
Sides median_pages(const Row& row);

/// Rows that are measured in turn, round by round; the floor first, if it is measured.
using Group = std::vector<Row>;

/// The rows of a case.
Group make_group(const Options& options, const Case& which);

/// Measures everything that the options name. `done` gets each group as soon as it is complete.
/// `say` gets a line for each case that is left out because this machine has too little memory.
/// Throws batchrpc::Interrupted, and the error of a failed call.
void measure_all(const Options& options, const batchrpc::InterruptFlag& interrupts,
                 const std::function<void(const Group&)>& done,
                 const std::function<void(const std::string&)>& say);

}  // namespace tensor_benchmark
