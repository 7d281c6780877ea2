#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>

#include "batchrpc/call/call_context.hpp"
#include "batchrpc/trace/record_sink.hpp"
#include "batchrpc/transport/loop.hpp"
#include "wire/frame_watch.hpp"

namespace batchrpc::detail {

/// A call of this node that is being recorded. Its record goes to the sink when the call ends,
/// before the program learns of that. Used by one thread at a time, except taken().
class CallProbe final : public FrameWatch {
 public:
  /// `record` contains all that is known before the call is sent.
  CallProbe(std::shared_ptr<Loop> clock, std::shared_ptr<RecordSink> sink, CallRecord&& record,
            bool wants_reply);
  /// A call that has not ended was never sent.
  ~CallProbe() override;

  /// Sets the size of the call's message, including its payloads.
  void set_bytes_out(std::uint64_t bytes) noexcept { record_.bytes_out = bytes; }
  /// The complete reply has come, with a size of `bytes`.
  void replied(std::uint64_t bytes);
  /// Sets the node that answers the call.
  void set_callee(const PeerIdentity& callee);
  /// Adds the callee's part of the record.
  void tells(CallRecord&& callee);
  /// The call has failed. Only the first error counts.
  void failed(const std::exception_ptr& error);
  /// The caller gets the result now. Only the first call of this function counts.
  void end() noexcept;

  /// The message is sent. For a notification, that is the end.
  void taken() noexcept override;

 private:
  const std::shared_ptr<Loop> clock_;
  const std::shared_ptr<RecordSink> sink_;
  const bool wants_reply_;
  CallRecord record_;
  std::atomic<TimePoint::rep> sent_{0};
  std::atomic<bool> ended_{false};
};

}  // namespace batchrpc::detail
