#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batchrpc/profile/call_times.hpp"
#include "batchrpc/profile/clock_alignment.hpp"
#include "batchrpc/profile/recording.hpp"
#include "profile/node_list.hpp"

namespace batchrpc::profile {

/// The slices of a recording's trace and their rows: each node has rows for the calls it made, for
/// its threads, and for its batches. Slices of one row never cross. All times are on the
/// reference's clock. Refers to the recording, which must outlive it.
class TraceLayout {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  struct Row {
    std::size_t node = 0;
    std::string name;  // "calls 1", "thread 42", "thread 42 (2)", "batches 1"
  };
  /// A row has one call at a time, so that the call's phases lie inside it.
  struct Call {
    const CallRecord* record = nullptr;
    CallTimes times{};
    std::size_t row = kNone;          // none if the caller reported nothing
    std::size_t handler_row = kNone;  // none if the callee reported nothing
    std::size_t batch = kNone;        // index of its batch
  };
  struct Operator {
    const OperatorRecord* record = nullptr;
    std::size_t call = 0;  // the call it ran for; in a batch, one of them
    TimePoint begin{};
    TimePoint end{};
    std::size_t row = 0;
  };
  struct Batch {
    std::size_t node = 0;
    TimePoint begin{};
    TimePoint end{};
    std::size_t row = 0;
    std::vector<std::size_t> calls{};  // its recorded calls; at least one
  };
  /// A slice on a thread's row; runs are in the order in which a row's slices must come.
  struct Run {
    enum class Kind : unsigned char { handler, operator_run };
    Kind kind = Kind::handler;
    std::size_t index = 0;   // index of the call or operator
    std::size_t node = 0;    // the node it ran on
    std::uint64_t thread{};  // the thread it ran on
    TimePoint begin{};
    TimePoint end{};
  };

  TraceLayout(const Recording& recording, const ClockAlignment& clocks);

  NodeList nodes;
  std::vector<Row> rows;
  std::vector<Call> calls;
  std::vector<Operator> operators;
  std::vector<Batch> batches;
  std::vector<Run> runs;
  TimePoint origin{};  // the earliest time

 private:
  void add(const Recording& recording, const ClockAlignment& clocks);
  void place_calls();
  void place_runs();
  void place_batches();
};

}  // namespace batchrpc::profile
