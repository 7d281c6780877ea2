#include "node/attempt_failures.hpp"

#include <algorithm>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "call/call_diagnostics_text.hpp"
#include "node/retry_schedule.hpp"

namespace batchrpc {

void AttemptFailures::add(const std::exception_ptr& thrown, const Error& error) {
  diagnostics_ = error.diagnostics() != nullptr
                     ? std::make_shared<CallDiagnostics>(*error.diagnostics())
                     : nullptr;
  if (error.may_have_run()) may_have_run_ = thrown;
}

std::exception_ptr AttemptFailures::final_error(const std::exception_ptr& thrown, const Error& last,
                                                const std::string& note) {
  const bool hides = may_have_run() && !last.may_have_run();
  if (hides && diagnostics_) diagnostics_->guarantee = Guarantee::at_most_once;
  if (!hides && note.empty()) return thrown;
  std::string more = note.empty() ? "" : "; " + note;
  if (hides) more += "; an earlier attempt may have run: ";
  if (hides && last.code() == ErrorCode::not_sent) {
    try {
      std::rethrow_exception(may_have_run_);
    } catch (const Error& earlier) {
      return detail::copy_error(earlier, true, {.before = last.what() + more});
    }
  }
  if (hides) more += describe(may_have_run_);
  return detail::copy_error(last, hides || last.may_have_run(), {.behind = more});
}

void AttemptFailures::end_between_attempts(std::string_view peer, std::string_view function,
                                           const RetrySchedule& schedule,
                                           std::optional<TimePoint> now) {
  if (!diagnostics_) {
    diagnostics_ = std::make_shared<CallDiagnostics>();
    diagnostics_->function = function;
    diagnostics_->peer = peer;
    diagnostics_->called_at = diagnostics_->ended_at = schedule.called_at();
  }
  if (now) diagnostics_->ended_at = *now;
  diagnostics_->guarantee =
      Guarantee::none;  // report_diagnostics() uses the guarantee of the error
}

void AttemptFailures::report(const std::exception_ptr& error,
                             const RetrySchedule& schedule) noexcept {
  if (!diagnostics_) return;
  diagnostics_->attempt = std::max(schedule.attempts(), 1);
  diagnostics_->attempts = schedule.most_attempts();
  diagnostics_->first_called_at = schedule.called_at();
  report_diagnostics(error, std::move(diagnostics_));
}

}  // namespace batchrpc
