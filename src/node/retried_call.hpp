#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "node/attempt_failures.hpp"
#include "node/retried_request.hpp"
#include "node/retry_schedule.hpp"

namespace batchrpc {

class NestedCall;
class NodeCore;

/// A call that is retried (CallOptions::retry). It makes attempts one after the other, and receives
/// their replies, until one ends the call for its caller. Either an attempt is in flight, or the
/// call pauses (Retries). So it has one owner at any time, and other threads only call
/// cancel_call().
class RetriedCall final : public detail::ReplyReceiver,
                          public detail::Submitter,
                          public std::enable_shared_from_this<RetriedCall> {
 public:
  /// Makes the first attempt. `encoder` holds the arguments; its payloads are moved away. `handler`
  /// is called exactly once, as by NodeCore::submit. Throws InvalidArgument if the call cannot be
  /// retried.
  static std::shared_ptr<RetriedCall> start(NodeCore& core, std::string_view peer,
                                            const detail::FunctionKey& function,
                                            detail::OutgoingOptions&& options, Encoder& encoder,
                                            detail::ReplyHandler&& handler);

  /// Cancels the attempt that is in flight, and makes no other. Thread-safe.
  bool cancel_call(std::uint64_t id) noexcept override;

  /// Make the next attempt, or end the call with ShutDown. Called by the owner, who has ended the
  /// pause of the call.
  /// @{
  void attempt();
  void shut_down();
  /// @}

  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  /// Returns peer and function, such as "worker1: add".
  [[nodiscard]] std::string text() const;

  void receive(detail::Reply& reply) noexcept override;
  void submitted(detail::SubmittedCall call, bool cancel_when_dropped) noexcept override;

  /// Used by start().
  RetriedCall(NodeCore& core, std::string_view peer, const detail::FunctionKey& function,
              const detail::OutgoingOptions& options, Encoder& encoder);
  ~RetriedCall();
  RetriedCall(const RetriedCall&) = delete;
  RetriedCall& operator=(const RetriedCall&) = delete;

 private:
  void attempt_failed(const std::exception_ptr& thrown);
  [[nodiscard]] std::string try_again(ErrorCode failed_by, Duration least_pause);
  void cancel_attempt() noexcept;
  void end_pause();
  void end_cancelled();
  void end_between(const std::exception_ptr& error);
  void end(const std::exception_ptr& error);

  const std::weak_ptr<NodeCore> core_;
  const std::uint64_t number_;
  RetrySchedule schedule_;
  RetriedRequest request_;
  detail::ReplyHandler handler_{};
  AttemptFailures failures_{};
  std::shared_ptr<RetriedCall> under_way_{};  // itself, until the reply of the attempt
  std::unique_ptr<NestedCall> nested_{};      // set if it was made in another call
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> over_{false};
  std::mutex mutex_;                 // guards the member below
  detail::SubmittedCall submitted_;  // the attempt in flight, or the last one
};

}  // namespace batchrpc
