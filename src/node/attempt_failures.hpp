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

/// What the failed attempts of a call leave for the error with which the call ends: the diagnostics
/// of the last one, and an attempt that may have run. Not thread-safe: the call's owner uses it.
class AttemptFailures {
 public:
  /// An attempt has ended with `error`, which `thrown` holds.
  void add(const std::exception_ptr& thrown, const Error& error);

  /// Whether any failed attempt may have run.
  [[nodiscard]] bool may_have_run() const noexcept { return may_have_run_ != nullptr; }

  /// The error for the caller after `last`, the latest that was added and which `thrown` holds. It
  /// says NotSent, or may_have_run() == false, only when no attempt may have run. `note` says why
  /// no further attempt is made; it may be empty.
  [[nodiscard]] std::exception_ptr final_error(const std::exception_ptr& thrown, const Error& last,
                                               const std::string& note);

  /// The call ends while no attempt is under way: the diagnostics of the last attempt, or new ones,
  /// go on until `now`. Without `now`, because the node is gone, they end where they did.
  void end_between_attempts(std::string_view peer, std::string_view function,
                            const RetrySchedule& schedule, std::optional<TimePoint> now);

  /// Puts the diagnostics into `error`, with which the call ends; does nothing where there are
  /// none.
  void report(const std::exception_ptr& error, const RetrySchedule& schedule) noexcept;

 private:
  std::exception_ptr may_have_run_{};               // the last that may have run
  std::shared_ptr<CallDiagnostics> diagnostics_{};  // of the last that failed; nobody else's
};

}  // namespace batchrpc
