#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "call_benchmark/floor.hpp"
#include "call_benchmark/options.hpp"
#include "call_benchmark/shape.hpp"
#include "call_benchmark/stretch.hpp"
#include "common/cpu_time.hpp"

namespace call_benchmark {

/// One figure: the caller, its settings and its results.
struct Row {
  Transport transport = Transport::tcp;
  Case which = Case::payload64;
  Shape shape{};
  bool pinned = false;
  std::optional<Floor> floor{};  ///< empty for batchrpc, which has the next two members
  Handlers handlers = Handlers::short_ones;
  Style style = Style::get;
  int profiler = 0;      ///< one in this many calls is recorded; 0: none
  MessageSizes bytes{};  ///< of a request and a reply on the wire

  std::vector<double> calls_per_s{};  ///< one per round
  std::vector<double> p50_us{};       ///< one per round
  std::vector<CpuTime> cpu_us{};      ///< per call; one per round
  std::vector<double> rtt_us{};       ///< of all timed calls of all rounds
};

/// The median over the rounds, for each side.
CpuTime median_cpu(const Row& row);

/// A row's ratio to the floor of the same rounds.
struct Ratio {
  double calls_per_s = 0;  ///< median over the rounds of ours / floor's; higher is better
  double rtt = 0;          ///< the same for the median round trip; lower is better
  double cpu = 0;          ///< the same for the CPU time per call of both sides together
};
Ratio ratio(const Row& row, const Row& floor);

/// Rows that are measured in turn, round by round; the blocking floor is first.
using Group = std::vector<Row>;

/// Measures everything that the options name. `done` gets each group as soon as it is complete.
/// Throws Interrupted.
void measure_all(const Options& options, Interrupt& interrupt,
                 const std::function<void(const Group&)>& done);

}  // namespace call_benchmark
