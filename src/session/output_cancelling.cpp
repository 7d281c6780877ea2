#include <algorithm>
#include <iterator>
#include <utility>

#include "session/output_queue.hpp"
#include "wire/frame.hpp"

// What an output queue does with calls that end before they have left, or that the peer has wait.
namespace batchrpc {

bool OutputQueue::retract_locked(Place place, std::vector<Bytes>& payloads) {
  if (place.begin < taken_) return false;
  if (closed_) return true;
  const auto frame =
      std::span(queued_).last(appended_ - place.begin).first(static_cast<std::size_t>(place.size));
  cut_off_locked(wire::id_of(frame), payloads);
  wire::make_void(frame);
  --queued_count_;  // only calls are taken back
  return true;
}

// Takes the payloads of a call out of those that are to be sent.
template <class Calls>
std::optional<OutputQueue::LargePayloads> OutputQueue::take(Calls& from, std::uint64_t call) {
  const auto at = std::find_if(from.begin(), from.end(), [&](const LargePayloads& entry) {
    return entry.call == call && !entry.of_reply;
  });
  if (at == from.end()) return std::nullopt;
  std::optional<LargePayloads> taken = std::move(*at);
  from.erase(at);
  return taken;
}

// The same, whether they wait or not; they count among those that do not.
std::optional<OutputQueue::LargePayloads> OutputQueue::take(std::uint64_t call) {
  if (auto payloads = take(paused_, call)) {
    held_paused_ -= payloads->bytes;
    held_calls_ += payloads->bytes;
    return payloads;
  }
  if (auto payloads = take(unanswered_, call)) return payloads;
  return take(large_, call);
}

void OutputQueue::pause_locked(std::uint64_t call) {
  if (auto payloads = take(call)) {
    held_calls_ -= payloads->bytes;
    held_paused_ += payloads->bytes;
    paused_.push_back(std::move(*payloads));
  }
}

void OutputQueue::resume_locked(std::uint64_t call) {
  if (auto payloads = take(call)) {
    payloads->answered = true;
    large_.push_back(std::move(*payloads));
  }
}

bool OutputQueue::cut_off_locked(std::uint64_t call, std::vector<Bytes>& payloads) {
  if (large_.empty() && unanswered_.empty() && paused_.empty()) return false;  // nearly always
  auto large = take(call);
  if (!large) return false;
  if (large->index == 0 && large->offset == 0) {
    let_go({.calls = large->bytes});
  } else {  // with the chunks that have left
    queued_held_.calls += large->bytes;
  }
  const bool incomplete = large->skip_what_is_sent();
  std::move(large->payloads.begin(), large->payloads.end(), std::back_inserter(payloads));
  return incomplete;
}

}  // namespace batchrpc
