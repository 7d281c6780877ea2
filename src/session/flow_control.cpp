#include "session/flow_control.hpp"

#include "session/incoming_calls.hpp"

namespace batchrpc {

void FlowControl::open() noexcept {
  if (state_.exchange(State::open, std::memory_order_acq_rel) != State::shut) return;
  if (const auto calls = calls_.lock()) calls->send_credit(call_, wire::kAllCredit);
}

void FlowControl::hold() {
  if (state_.load(std::memory_order_acquire) == State::open) return;
  const auto calls = calls_.lock();
  if (calls) calls->send_credit(call_, wire::kNoCredit);
  // Set only now, so that the credit sent by a concurrent open() follows this one.
  State unused = State::unused;
  const bool is_shut =
      state_.compare_exchange_strong(unused, State::shut, std::memory_order_acq_rel);
  if (!is_shut && calls) {
    calls->send_credit(call_, wire::kAllCredit);
  }
}

}  // namespace batchrpc
