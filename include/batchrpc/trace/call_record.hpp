#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/trace/trace_context.hpp"

/// What was recorded of calls: plain data, which travels from callee to caller and is shown by
/// Profiler.
namespace batchrpc {

/// One side of a call: a node, and the thread there.
struct RecordedPlace {
  std::string node{};         ///< its name
  int rank = -1;              ///< -1: none, or not known
  std::uint64_t process = 0;  ///< the system's number of its process; 0: not known
  std::uint64_t thread = 0;   ///< and of the thread
};

/// An operator of LibTorch that ran for a call.
struct OperatorRecord {
  std::string name{};        ///< as LibTorch calls it: "aten::add"
  TimePoint begin{};         ///< on the clock of the node that ran it
  TimePoint end{};           ///< the same
  std::uint64_t thread = 0;  ///< which ran it
  bool shared = false;       ///< it ran for several rows of a batch, and each has it
};

/// The batch of which a call was a row.
struct BatchRecord {
  std::uint64_t number =
      0;                   ///< of the batches that the callee's process records, from 1 on; 0: none
  std::uint64_t rows = 0;  ///< of the batch
  TimePoint begin{};       ///< when its handler began, on the callee's clock
  TimePoint end{};         ///< when it was done
};

/// One call that was recorded, with what it caused: operators, and calls of its handler. A time of
/// zero says that it is not known.
///
/// The phases of a call, which add up to its whole time (docs/profiling.md):
/// called, *encode*, encoded, *queued*, sent, *wire*, received, *waiting*, begun, *batch*,
/// batch.begin (where it is a row of one), *handler*, finished, *reply*, replied, *decode*, ended.
struct CallRecord {
  std::string function{};    ///< as it is exposed, without what marks a method
  RecordedPlace caller{};    ///< who called
  RecordedPlace callee{};    ///< who ran it
  TraceContext span{};       ///< of the call itself
  std::uint64_t parent = 0;  ///< span id of the call whose handler made this one, as a big-endian
                             ///< number; 0: none
  bool parent_is_external = false;  ///< the parent is no call, but a span of who gave the trace
                                    ///< (CallOptions::trace)
  /// On the caller's clock; all zero if the callee alone tells of the call.
  /// @{
  TimePoint called{};   ///< the program called
  TimePoint encoded{};  ///< its arguments were encoded
  TimePoint sent{};     ///< its message was given to the socket
  TimePoint replied{};  ///< the reply was there, as a whole
  TimePoint ended{};    ///< it was decoded, or the call had failed
  /// @}
  /// On the callee's clock; all zero if the callee did not tell (NodeOptions::profiling), or the
  /// call has failed before.
  /// @{
  TimePoint received{};  ///< the call was there, as a whole
  TimePoint begun{};     ///< a thread has begun with it, or a batcher has it
  TimePoint finished{};  ///< the function has its result, or has failed
  /// @}
  std::uint64_t bytes_out = 0;  ///< of the call's message and of what travels beside it
  std::uint64_t bytes_in = 0;   ///< of the reply
  std::string error{};          ///< the kind of error that it ended with, "TimedOut"; empty: none
  BatchRecord batch{};          ///< of which it was a row; number 0: it was in none
  std::vector<OperatorRecord> operators{};  ///< in the order in which they ended
  std::vector<CallRecord> calls{};          ///< by its handler, in the order in which they ended
  bool shared = false;         ///< a batch's handler made it, for several rows: each has it
  std::uint64_t left_out = 0;  ///< operators and calls that were not kept, for want of room
  /// Its caller knows of no error: of a notification, when both sides have been gathered.
  bool failed_at_callee_alone = false;
};

}  // namespace batchrpc
