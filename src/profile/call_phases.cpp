#include "batchrpc/profile/call_phases.hpp"

namespace batchrpc {

Duration CallPhases::total() const noexcept {
  Duration total{};
  for (const CallPhase& phase : kCallPhases)
    total += this->*phase.field;
  return total;
}

CallPhases CallPhases::of(const CallTimes& times) noexcept {
  return {.encode = times.encoded - times.called,
          .queued = times.sent - times.encoded,
          .wire = times.received - times.sent,
          .waiting = times.begun - times.received,
          .batch = times.handled - times.begun,
          .handler = times.finished - times.handled,
          .reply = times.replied - times.finished,
          .decode = times.ended - times.replied};
}

}  // namespace batchrpc
