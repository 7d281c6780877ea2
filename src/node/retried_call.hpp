#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/call/remote_call.hpp"

namespace batchrpc {

class Error;
struct CallDiagnostics;
class NestedCall;
class NodeCore;

/// A call that is tried again (CallOptions::retry). It keeps the encoded arguments, their payloads
/// shared, and receives the replies to its attempts, one after the other, until one ends the call
/// for whoever made it. Either an attempt is under way, whose reply is to come, or the call pauses
/// (Retries): so it has one owner at any time, and only cancel_call() comes from elsewhere.
class RetriedCall final : public detail::ReplyReceiver,
                          public detail::Submitter,
                          public std::enable_shared_from_this<RetriedCall> {
 public:
  /// Makes the first attempt. `encoder` holds the arguments, and its payloads are moved away.
  /// `handler` is called exactly once, as by NodeCore::submit. Throws InvalidArgument when the call
  /// cannot be retried.
  static std::shared_ptr<RetriedCall> start(NodeCore& core, std::string_view peer,
                                            const detail::FunctionKey& function,
                                            detail::OutgoingOptions&& options, Encoder& encoder,
                                            detail::ReplyHandler&& handler);

  /// No attempt follows, and the one that is under way is cancelled. Thread-safe.
  bool cancel_call(std::uint64_t id) noexcept override;

  /// For who has taken it out of its pause: makes the next attempt, or ends it with ShutDown.
  /// @{
  void attempt();
  void shut_down();
  /// @}

  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  /// Peer and function, such as "worker1: add".
  [[nodiscard]] std::string text() const;

  void receive(detail::Reply& reply) noexcept override;
  void submitted(detail::SubmittedCall call, bool cancel_when_dropped) noexcept override;

  /// By start().
  RetriedCall(NodeCore& core, std::string_view peer, const detail::FunctionKey& function,
              const detail::OutgoingOptions& options);
  ~RetriedCall();
  RetriedCall(const RetriedCall&) = delete;
  RetriedCall& operator=(const RetriedCall&) = delete;

 private:
  void attempt_failed(const std::exception_ptr& thrown);
  [[nodiscard]] std::string try_again(ErrorCode failed_by, Duration least_pause);
  [[nodiscard]] std::exception_ptr final_error(const std::exception_ptr& thrown, const Error& last,
                                               const std::string& note) const;
  void cancel_attempt() noexcept;
  void end_pause();
  void end_cancelled();
  void end_between(const std::exception_ptr& error);
  void end(const std::exception_ptr& error);

  const std::weak_ptr<NodeCore> core_;
  const std::uint64_t number_;
  const std::string peer_;
  const std::string function_;
  const std::string shown_;  // as people know it
  const std::string signature_;
  const std::uint64_t hash_;
  const RetryOptions retry_;
  const std::shared_ptr<const void> kept_;
  std::shared_ptr<detail::OutgoingExtras> extras_;
  const Duration timeout_;  // of all attempts together, and when that is over
  const TimePoint called_at_;
  const TimePoint deadline_;
  std::vector<Word> words_{};
  std::vector<Bytes> payloads_{};
  detail::ReplyHandler handler_{};
  int made_ = 0;                                    // attempts
  std::exception_ptr maybe_ran_{};                  // the last that may have run
  std::shared_ptr<CallDiagnostics> diagnostics_{};  // of the last that failed
  std::shared_ptr<RetriedCall> under_way_{};        // itself, until the attempt's reply
  std::unique_ptr<NestedCall> nested_{};            // in the call in which it was made
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> over_{false};
  std::mutex mutex_;                 // guards what follows
  detail::SubmittedCall submitted_;  // the attempt that is under way, or was the last
};

}  // namespace batchrpc
