#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

class Error;
class RetrySchedule;
struct CallDiagnostics;

/// Remembers the failed attempts of a call for the error with which the call ends: the diagnostics
/// of the last one, and an attempt that may have run. Not thread-safe: the call's owner uses it.
class AttemptFailures {
 public:
  /// An attempt has ended with `error`, which `thrown` holds.
  void add(const std::exception_ptr& thrown, const Error& error);

  /// Whether any failed attempt may have run.
  [[nodiscard]] bool may_have_run() const noexcept { return may_have_run_ != nullptr; }

  /// Returns the error for the caller after `last`, the latest that was added and which `thrown`
  /// holds. It is NotSent, or has may_have_run() == false, only when no attempt may have run.
  /// `note` is the reason for making no further attempt; it may be empty.
  [[nodiscard]] std::exception_ptr final_error(const std::exception_ptr& thrown, const Error& last,
                                               const std::string& note);

  /// The call ends while no attempt is in flight. The diagnostics of the last attempt, or new ones,
  /// are extended until `now`. Without `now`, because the node is gone, they stay as they are.
  void end_between_attempts(std::string_view peer, std::string_view function,
                            const RetrySchedule& schedule, std::optional<TimePoint> now);

  /// Adds the diagnostics to `error`, with which the call ends. Does nothing if there are none.
  void report(const std::exception_ptr& error, const RetrySchedule& schedule) noexcept;

 private:
  std::exception_ptr may_have_run_{};               // of the last attempt that may have run
  std::shared_ptr<CallDiagnostics> diagnostics_{};  // not shared; of the last failed attempt
};

}  // namespace batchrpc
