#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/interrupt.hpp"
#include "tensor_benchmark/options.hpp"
#include "tensor_benchmark/sample.hpp"
#include "tensor_benchmark/shape.hpp"

namespace tensor_benchmark {

/// One figure: who moved tensors, how, and what came of it.
struct Row {
  Case which{};
  bool floor = false;  ///< or else batchrpc
  Receive receive = Receive::fresh;

  std::vector<double> gb_per_s{};       ///< a round each
  std::vector<double> p50_us{};         ///< a round each
  std::vector<CpuTime> cpu_s_per_gb{};  ///< a round each
  std::vector<Sides> fresh_pages{};     ///< a call; a round each
  std::vector<double> us{};             ///< of all calls of all rounds, none left out
  std::optional<Sides> copies{};        ///< of the payload, a call
};

/// What a row is of the floor: medians over the rounds of ours / floor's.
struct Ratio {
  double gb_per_s = 0;  ///< more is better
  double p50 = 0;       ///< less is better
  double cpu = 0;       ///< of both sides together; less is better
};
Ratio ratio(const Row& row, const Row& floor);

/// Medians over the rounds, each side by itself.
CpuTime median_cpu(const Row& row);
Sides median_pages(const Row& row);

/// Rows that are measured in turn, round by round; the floor first, if it is measured.
using Group = std::vector<Row>;

/// The rows of a case.
Group make_group(const Options& options, const Case& which);

/// Measures all that the options name; `done` gets each group as soon as it is there, and `say` a
/// line for each that is left out, since this machine has too little memory for it. Throws
/// Interrupted, and whatever a call fails with.
void measure_all(const Options& options, const batchrpc_examples::InterruptFlag& interrupts,
                 const std::function<void(const Group&)>& done,
                 const std::function<void(const std::string&)>& say);

}  // namespace tensor_benchmark
