#include "session/outgoing_payloads.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace batchrpc {

// Skips payloads that have been sent. Returns whether anything is left to send.
bool OutgoingPayloads::Sender::skip_sent() {
  while (index < payloads.size() && offset == payloads[index].size()) {
    offset = 0;
    ++index;
  }
  return index < payloads.size();
}

std::size_t OutgoingPayloads::Sender::rest() const {
  std::size_t left = 0;
  for (std::size_t i = index; i < payloads.size(); ++i)
    left += payloads[i].size();
  return left - offset;
}

// The bytes that may be sent before the peer gives credit for the rest.
std::size_t OutgoingPayloads::Sender::eager_left() const {
  if (of_reply || granted) return std::numeric_limits<std::size_t>::max();
  return wire::kEagerBytes - std::min<std::size_t>(wire::kEagerBytes, bytes - rest());
}

void OutgoingPayloads::add(std::uint64_t call, bool of_reply, std::vector<Bytes>&& payloads,
                           std::uint64_t bytes) {
  ready_.push_back({.call = call,
                    .of_reply = of_reply,
                    .payloads = std::move(payloads),
                    .index = 0,
                    .offset = 0,
                    .bytes = bytes});
}

std::optional<OutgoingPayloads::Next> OutgoingPayloads::next(std::size_t most,
                                                             std::vector<Bytes>& released) {
  const auto release = [&](Sender& sender) {
    std::move(sender.payloads.begin(), sender.payloads.end(), std::back_inserter(released));
  };
  while (!ready_.empty() && !ready_.front().skip_sent()) {  // all are empty
    release(ready_.front());
    ready_.pop_front();
  }
  if (ready_.empty()) return std::nullopt;
  Sender sender = std::move(ready_.front());
  ready_.pop_front();
  const Bytes& payload = sender.payloads[sender.index];
  const std::size_t eager = sender.eager_left();
  const std::size_t size = std::min({most, payload.size() - sender.offset, eager});
  Next next{.header = {.kind = wire::FrameKind::chunk,
                       .flags = sender.of_reply ? wire::kOfReply : std::uint16_t{0},
                       .number = static_cast<std::uint32_t>(sender.index),
                       .id = sender.call,
                       .value = size},
            .chunk = {.owner = payload,
                      .bytes = payload.span().subspan(sender.offset, size),
                      .padding = wire::padded(size) - size},
            .of_reply = sender.of_reply};
  sender.offset += size;
  if (!sender.skip_sent()) {
    next.finished = sender.bytes;
    release(sender);
  } else if (size == eager) {
    ungranted_.push_back(std::move(sender));
  } else {
    ready_.push_back(std::move(sender));
  }
  return next;
}

std::uint64_t OutgoingPayloads::pause(std::uint64_t call) {
  auto taken = take(call);
  if (!taken) return 0;
  const std::uint64_t bytes = taken->sender.bytes;
  paused_.push_back(std::move(taken->sender));
  return taken->was_paused ? 0 : bytes;
}

std::uint64_t OutgoingPayloads::resume(std::uint64_t call) {
  auto taken = take(call);
  if (!taken) return 0;
  const std::uint64_t bytes = taken->sender.bytes;
  taken->sender.granted = true;
  ready_.push_back(std::move(taken->sender));
  return taken->was_paused ? bytes : 0;
}

std::optional<OutgoingPayloads::CutOff> OutgoingPayloads::cut_off(std::uint64_t call,
                                                                  std::vector<Bytes>& payloads) {
  if (ready_.empty() && ungranted_.empty() && paused_.empty())
    return std::nullopt;  // the usual case
  auto taken = take(call);
  if (!taken) return std::nullopt;
  Sender& sender = taken->sender;
  const bool begun = sender.index != 0 || sender.offset != 0;
  const CutOff cut{.bytes = sender.bytes,
                   .was_paused = taken->was_paused,
                   .was_begun = begun,
                   .incomplete = sender.skip_sent()};
  std::move(sender.payloads.begin(), sender.payloads.end(), std::back_inserter(payloads));
  return cut;
}

template <class Senders>
std::optional<OutgoingPayloads::Sender> OutgoingPayloads::take(Senders& from, std::uint64_t call) {
  const auto at = std::find_if(from.begin(), from.end(), [&](const Sender& sender) {
    return sender.call == call && !sender.of_reply;
  });
  if (at == from.end()) return std::nullopt;
  std::optional<Sender> taken = std::move(*at);
  from.erase(at);
  return taken;
}

// Removes and returns the payloads of a call, in whichever list they are.
std::optional<OutgoingPayloads::Taken> OutgoingPayloads::take(std::uint64_t call) {
  if (auto sender = take(paused_, call)) return Taken{*std::move(sender), true};
  if (auto sender = take(ungranted_, call)) return Taken{*std::move(sender)};
  if (auto sender = take(ready_, call)) return Taken{*std::move(sender)};
  return std::nullopt;
}

}  // namespace batchrpc
