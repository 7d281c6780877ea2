#include "reliability/ledger.hpp"

#include <algorithm>
#include <utility>

#include "batchrpc/call/call_context.hpp"

namespace batchrpc::test {
namespace {

using namespace std::chrono_literals;

// A time-out of a second or more may end up to 10 ms early, and clocks drift.
constexpr Duration kEarly = 12ms;
constexpr Duration kLate = 20ms;

std::string text(Duration time) { return std::to_string(time / 1us) + " us"; }

}  // namespace

LedgerCall& Ledger::make(LedgerCall call) {
  call.id = calls_.size() + 1;
  call.made = world_.time();
  return calls_.emplace_back(std::move(call));
}

Duration Ledger::slack() const {
  switch (weather_) {
    case Weather::calm:
      return 400ms;
    case Weather::cuts:
    case Weather::stall:
      return 5s;
    case Weather::storm:
      break;
  }
  return Duration::max();
}

void Ledger::complain(const LedgerCall& call, const std::string& what) {
  complaints_.push_back(text(world_.time()) + ": call " + std::to_string(call.id) + ", " +
                        call.what + ", made at " + text(call.made) + ": " + what);
}

void Ledger::starts(std::uint64_t id) {
  if (id == 0 || id > calls_.size()) return complain("a call that nobody made has run");
  LedgerCall& call = at(id);
  if (++call.ran > call.most_runs) complain(call, "has run " + std::to_string(call.ran) + " times");
  if (call.never_ran) complain(call, "has run, and was said never to");
  const CallContext* const context = CallContext::current();
  if (context != nullptr) {
    const auto left = context->time_left();
    if (left && *left <= Duration::zero()) complain(call, "was started after its deadline");
    if (context->cancelled()) complain(call, "was started though it was cancelled");
  }
  const auto over = call.cancelled ? call.cancelled : call.over;
  if (over && slack() != Duration::max() && world_.time() > *over + slack()) {
    complain(call, "was started long after it was over, at " + text(*over));
  }
}

void Ledger::starts_in_order(std::uint64_t handle, std::uint64_t number) {
  std::uint64_t& last = last_by_handle_[handle];
  if (number <= last) {
    complain("of handle " + std::to_string(handle) + " call " + std::to_string(number) +
             " was started after call " + std::to_string(last));
  }
  last = number;
}

// When it ends at the latest: with the calls in which it was made.
Duration Ledger::deadline_of(const LedgerCall& call) {
  Duration deadline = call.timeout == Duration::max() ? Duration::max() : call.made + call.timeout;
  if (call.parent != 0) deadline = std::min(deadline, deadline_of(at(call.parent)));
  return deadline;
}

// Whether one of the calls in which it was made may have been given up.
bool Ledger::family_is_over(const LedgerCall& call) {
  if (call.parent == 0) return false;
  const LedgerCall& parent = at(call.parent);
  return parent.cancelled || parent.ended > 0 || family_is_over(parent);
}

bool Ledger::is_allowed(const LedgerCall& call, ErrorCode code) {
  switch (code) {
    case ErrorCode::remote_error:
      return call.throws;
    case ErrorCode::timed_out:
      return deadline_of(call) != Duration::max();
    case ErrorCode::cancelled:
      return call.cancelled || family_is_over(call) ||
             (call.parent != 0 && weather_ == Weather::storm);
    case ErrorCode::overloaded:
      return call.may_be_refused;
    case ErrorCode::shut_down:
      return call.caller_is_gone;
    case ErrorCode::not_sent:
    case ErrorCode::unknown:
    case ErrorCode::peer_lost:
      return weather_ == Weather::storm;
    case ErrorCode::owner_lost:
      return weather_ == Weather::storm;
    case ErrorCode::not_found:
    case ErrorCode::rref_expired:
      return call.may_be_late || weather_ == Weather::storm;
    default:
      return false;
  }
}

void Ledger::check_time(const LedgerCall& call, bool timed_out) {
  const Duration now = world_.time();
  const Duration deadline = deadline_of(call);
  if (timed_out && now < deadline - kEarly) {
    complain(call, "timed out before its time, at " + text(deadline));
  }
  if (weather_ == Weather::storm || weather_ == Weather::stall) return;  // callers stand still
  // The time left travels with a call. A cut that holds the call up makes its calls as much later.
  const Duration late = call.parent != 0 && weather_ == Weather::cuts ? slack() : kLate;
  if (deadline != Duration::max() && now > deadline + late) {
    complain(call,
             "ended after its time, at " + text(deadline) + (timed_out ? ", as TimedOut" : ""));
  }
  if (call.quick != Duration::max() && now > call.made + call.quick + slack()) {
    complain(call, "took longer than anything was in the way");
  }
}

void Ledger::ends(std::uint64_t id, const Result<std::uint64_t>& result) {
  LedgerCall& call = at(id);
  call.over = world_.time();
  if (++call.ended > 1) return complain(call, "has ended twice");
  if (result) {
    ++outcomes_["value"];
    if (*result != answer_of(id)) complain(call, "has another call's answer, or a damaged one");
    if (call.ran == 0) complain(call, "was answered, and never ran");
    if (call.throws) complain(call, "was answered, and its function throws");
    if (call.is_surely_cancelled) complain(call, "was answered, and cancel() has said true");
    check_time(call, false);
    return;
  }
  const ErrorCode code = result.code();
  ++outcomes_[std::string(to_string(code))];
  const std::string described = std::string(to_string(code)) + ": " + result.message();
  if (!is_allowed(call, code)) complain(call, "may not end in " + described);
  try {
    std::rethrow_exception(result.error());
  } catch (const Error& error) {
    call.never_ran = !error.may_have_run();
  } catch (...) {
    complain(call, "ended in an error that is not the library's");
  }
  if (call.never_ran && call.ran > 0) complain(call, "has run, and ends in " + described);
  if (code == ErrorCode::not_sent && !call.never_ran) complain(call, "NotSent, and may have run");
  if (code == ErrorCode::remote_error && call.ran == 0) complain(call, "threw, and never ran");
  if (code == ErrorCode::cancelled || call.caller_is_gone) return;
  if (code == ErrorCode::overloaded && call.most_runs > 1) return;
  check_time(call, code == ErrorCode::timed_out);
}

void Ledger::caller_died(int host) {
  for (LedgerCall& call : calls_) {
    if (call.from == host && call.ended == 0) call.caller_is_gone = true;
  }
}

bool Ledger::all_ended() const {
  return std::all_of(calls_.begin(), calls_.end(), [](const LedgerCall& call) {
    return call.ended > 0 || call.untold || call.caller_is_gone;
  });
}

void Ledger::close() {
  for (const LedgerCall& call : calls_) {
    if (!call.untold && call.ended == 0) complain(call, "has never ended");
    const bool surely_arrives = call.untold && call.arrives && weather_ != Weather::storm;
    if (surely_arrives && call.ran == 0) complain(call, "a message that was lost");
  }
}

}  // namespace batchrpc::test
