#include "batchrpc/profile/call_times.hpp"

#include <algorithm>

#include "profile/times.hpp"

namespace batchrpc {
namespace {

using profile::is_known;

// The first and the last time that the callee's clock showed for the call.
struct Stay {
  TimePoint first = TimePoint::max();
  TimePoint last = TimePoint::min();
};

Stay stay_of(const CallRecord& call) {
  Stay stay;
  const auto note = [&](TimePoint time) {
    if (!is_known(time)) return;
    stay.first = std::min(stay.first, time);
    stay.last = std::max(stay.last, time);
  };
  note(call.received);
  note(call.begun);
  note(call.finished);
  if (call.batch.number != 0) note(call.batch.begin);
  return stay;
}

// How far to move the callee's times back so that they lie between sent and replied, or after sent
// if there is no reply.
Duration fitted(const Stay& stay, TimePoint sent, std::optional<TimePoint> replied,
                std::optional<Duration> callee_ahead) {
  const Duration latest = stay.first - sent;  // further back, it would begin too soon
  if (!replied) return std::min(latest, callee_ahead.value_or(latest));
  const Duration earliest = stay.last - *replied;  // less far, it would end too late
  if (earliest > latest) return latest;            // it does not fit: its end is cut off
  if (!callee_ahead) return earliest + (latest - earliest) / 2;
  return std::clamp(*callee_ahead, earliest, latest);
}

}  // namespace

bool CallTimes::has_caller(const CallRecord& call) noexcept {
  return is_known(call.called) || is_known(call.encoded) || is_known(call.sent) ||
         is_known(call.replied) || is_known(call.ended);
}

bool CallTimes::has_callee(const CallRecord& call) noexcept {
  return stay_of(call).first != TimePoint::max();
}

CallTimes CallTimes::of(const CallRecord& call, std::optional<Duration> callee_ahead) noexcept {
  CallTimes times;
  if (!has_caller(call)) {
    const Stay seen = stay_of(call);
    if (seen.first > seen.last) return times;
    CallRecord as_if;  // as if the wire took no time
    as_if.called = as_if.encoded = as_if.sent = seen.first;
    as_if.replied = as_if.ended = seen.last;
    as_if.received = call.received;
    as_if.begun = call.begun;
    as_if.finished = call.finished;
    as_if.batch = call.batch;
    return of(as_if, Duration::zero());
  }
  // The caller's first and last time.
  TimePoint first = TimePoint::max();
  TimePoint last = TimePoint::min();
  for (const TimePoint time : {call.called, call.encoded, call.sent, call.replied, call.ended}) {
    if (!is_known(time)) continue;
    first = std::min(first, time);
    last = std::max(last, time);
  }
  times.called = is_known(call.called) ? call.called : first;
  times.ended = std::max(times.called, is_known(call.ended) ? call.ended : last);
  const auto caller_time = [&](TimePoint time, TimePoint next) {
    return is_known(time) ? std::clamp(time, times.called, next) : next;
  };
  times.replied = caller_time(call.replied, times.ended);
  times.sent = caller_time(call.sent, times.replied);
  times.encoded = caller_time(call.encoded, times.sent);

  const Stay stay = stay_of(call);
  const bool has_reply = is_known(call.replied);
  if (stay.first != TimePoint::max()) {
    times.callee_ahead = fitted(
        stay, times.sent, has_reply ? std::optional(times.replied) : std::nullopt, callee_ahead);
  }
  const auto callee_time = [&](TimePoint time, TimePoint next) {
    return is_known(time) ? std::clamp(time - times.callee_ahead, times.sent, next) : next;
  };
  times.finished = callee_time(call.finished, times.replied);
  const bool in_batch = call.batch.number != 0 && is_known(call.batch.begin);
  const TimePoint handled =
      in_batch ? callee_time(call.batch.begin, times.finished) : times.finished;
  times.begun = callee_time(call.begun, handled);
  times.handled = in_batch ? handled : times.begun;
  times.received = callee_time(call.received, times.begun);
  times.callee = {times.received, times.begun, times.finished};
  if (!has_reply && is_known(call.finished)) {
    times.callee.finished = callee_time(call.finished, TimePoint::max());
    times.callee.begun = callee_time(call.begun, times.callee.finished);
    times.callee.received = callee_time(call.received, times.callee.begun);
  }
  return times;
}

}  // namespace batchrpc
