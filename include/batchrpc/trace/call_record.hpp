#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/trace/trace_context.hpp"

/// Records of calls: plain data that travels from callee to caller and that Profiler shows.
namespace batchrpc {

/// One side of a call: the node, and its thread.
struct RecordedPlace {
  std::string node{};         ///< the node's name
  int rank = -1;              ///< -1: none, or not known
  std::uint64_t process = 0;  ///< the system's id of its process; 0: not known
  std::uint64_t thread = 0;   ///< the system's id of the thread
};

/// An operator of LibTorch that ran for a call.
struct OperatorRecord {
  std::string name{};        ///< LibTorch's name for it, such as "aten::add"
  TimePoint begin{};         ///< on the clock of the node that ran it
  TimePoint end{};           ///< on the same clock
  std::uint64_t thread = 0;  ///< the thread that ran it
  bool shared = false;       ///< it ran for several rows of a batch, and each row's record has it
};

/// The batch that a call was a row of.
struct BatchRecord {
  std::uint64_t number = 0;  ///< number within the callee's process, from 1 on; 0: none
  std::uint64_t rows = 0;    ///< rows of the batch
  TimePoint begin{};         ///< when its handler began, on the callee's clock
  TimePoint end{};           ///< when its handler ended
};

/// One recorded call, with the operators and calls that its handler caused. A time of zero means
/// that it is not known.
///
/// The phases of a call, which add up to its whole time (docs/profiling.md):
/// called, *encode*, encoded, *queued*, sent, *wire*, received, *waiting*, begun, *batch*,
/// batch.begin (if it is a row of a batch), *handler*, finished, *reply*, replied, *decode*, ended.
struct CallRecord {
  std::string function{};  ///< the name it is exposed under, without the mark of a method
  RecordedPlace caller{};  ///< the node that called
  RecordedPlace callee{};  ///< the node that ran it
  TraceContext span{};     ///< the trace and the call's own span
  std::uint64_t parent =
      0;  ///< span id of the call whose handler made this one, as a big-endian number; 0: none
  bool parent_is_external =
      false;  ///< the parent is not a call, but a span of another tracer (CallOptions::trace)
  /// On the caller's clock. All zero if only the callee recorded the call.
  /// @{
  TimePoint called{};   ///< the program called
  TimePoint encoded{};  ///< its arguments were encoded
  TimePoint sent{};     ///< its message was passed to the socket
  TimePoint replied{};  ///< the whole reply had arrived
  TimePoint ended{};    ///< the reply was decoded, or the call had failed
  /// @}
  /// On the callee's clock. All zero if the callee sent no times (NodeOptions::profiling.enabled),
  /// or the call failed before.
  /// @{
  TimePoint received{};  ///< the whole call had arrived
  TimePoint begun{};     ///< a thread had started it, or a batcher had taken it
  TimePoint finished{};  ///< the function had returned its result, or had failed
  /// @}
  std::uint64_t bytes_out = 0;              ///< of the call's message and its payloads
  std::uint64_t bytes_in = 0;               ///< of the reply
  std::string error{};                      ///< the kind of error, such as "TimedOut"; empty: none
  BatchRecord batch{};                      ///< the batch it was a row of; number 0: none
  std::vector<OperatorRecord> operators{};  ///< in the order in which they ended
  std::vector<CallRecord> calls{};  ///< made by its handler, in the order in which they ended
  bool shared =
      false;  ///< a batch's handler made it for several rows, and each row's record has it
  std::uint64_t left_out =
      0;  ///< operators and calls that were not kept, because a limit was reached
  /// It failed at the callee, and its caller knows of no error: a notification, once both sides
  /// have been merged.
  bool failed_at_callee_alone = false;
};

}  // namespace batchrpc
