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

/// One figure: who made the calls, how, and what came of it.
struct Row {
  Transport transport = Transport::tcp;
  Case which = Case::payload64;
  Shape shape{};
  bool pinned = false;
  std::optional<Floor> floor{};  ///< or else batchrpc, with the next two
  Handlers handlers = Handlers::short_ones;
  Style style = Style::get;
  int profiler = 0;      ///< one in so many calls is recorded; 0: none
  MessageSizes bytes{};  ///< of a request and a reply on the wire

  std::vector<double> calls_per_s{};  ///< a round each
  std::vector<double> p50_us{};       ///< a round each
  std::vector<CpuTime> cpu_us{};      ///< a call; a round each
  std::vector<double> rtt_us{};       ///< of all timed calls of all rounds, none left out
};

/// The median over the rounds, each side by itself.
CpuTime median_cpu(const Row& row);

/// What a row is of the floor, in the same rounds.
struct Ratio {
  double calls_per_s = 0;  ///< median over the rounds of ours / floor's: more is better
  double rtt = 0;          ///< the same of the median round trip: less is better
  double cpu = 0;          ///< the same of the CPU time a call, both sides together
};
Ratio ratio(const Row& row, const Row& floor);

/// Rows that are measured in turn, round by round, the blocking floor first.
using Group = std::vector<Row>;

/// Measures all that the options name; `done` gets each group as soon as it is there. Throws
/// Interrupted.
void measure_all(const Options& options, Interrupt& interrupt,
                 const std::function<void(const Group&)>& done);

}  // namespace call_benchmark
