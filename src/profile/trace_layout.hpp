#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batchrpc/profile/call_times.hpp"
#include "batchrpc/profile/clock_alignment.hpp"
#include "batchrpc/profile/recording.hpp"
#include "profile/node_list.hpp"

namespace batchrpc::profile {

/// What a picture of a recording shows, and where: each node has rows for calls that it made, for
/// its threads, and for its batches. Slices of one row never cross. All times are on the
/// reference's clock. Refers to the recording, which must stay.
class TraceLayout {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  struct Row {
    std::size_t node = 0;
    std::string name;  // "calls 1", "thread 42", "thread 42 (2)", "batches 1"
  };
  /// Rows of calls are those of one call at a time, so that its phases lie within it.
  struct Call {
    const CallRecord* record = nullptr;
    CallTimes times{};
    std::size_t row = kNone;          // none if the caller told nothing
    std::size_t handler_row = kNone;  // none if the callee told nothing
    std::size_t batch = kNone;        // which of them
  };
  struct Operator {
    const OperatorRecord* record = nullptr;
    std::size_t call = 0;  // for which it ran; of a batch, for one of them
    TimePoint begin{};
    TimePoint end{};
    std::size_t row = 0;
  };
  struct Batch {
    std::size_t node = 0;
    TimePoint begin{};
    TimePoint end{};
    std::size_t row = 0;
    std::vector<std::size_t> calls{};  // those of its rows that were recorded; at least one
  };
  /// What runs on a thread, in the order in which slices of a row must come.
  struct Run {
    enum class Kind : unsigned char { handler, operator_run };
    Kind kind = Kind::handler;
    std::size_t index = 0;   // of calls or operators
    std::size_t node = 0;    // where it ran
    std::uint64_t thread{};  // on which
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
