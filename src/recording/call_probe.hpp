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

/// A call of this node's that is being recorded. Its record goes to the sink when it ends, before
/// the program learns of that. Used by one thread at a time, but for taken().
class CallProbe final : public FrameWatch {
 public:
  /// `record` says all that is known before the call is sent.
  CallProbe(std::shared_ptr<Loop> clock, std::shared_ptr<RecordSink> sink, CallRecord&& record,
            bool wants_reply);
  /// One that has not ended was never sent.
  ~CallProbe() override;

  /// Of its message, with what travels beside it.
  void set_bytes_out(std::uint64_t bytes) noexcept { record_.bytes_out = bytes; }
  /// The reply is there as a whole, of so many bytes.
  void replied(std::uint64_t bytes);
  /// By whom.
  void set_callee(const PeerIdentity& callee);
  /// And tells the callee's side of the call.
  void tells(CallRecord&& callee);
  /// The call has failed: counts once.
  void failed(const std::exception_ptr& error);
  /// The caller is told now; of several times the first.
  void end() noexcept;

  /// Of a notification that is the end.
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
