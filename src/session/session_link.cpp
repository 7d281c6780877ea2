#include "session/session_link.hpp"

#include <utility>

#include "batchrpc/base/error.hpp"
#include "session/flush_scope.hpp"

namespace batchrpc {
namespace {

ConnectionLimits limits_of(const NodeOptions& options) {
  ConnectionLimits limits;
  limits.frame_bytes = options.limits.max_frame_bytes;
  return limits;
}

}  // namespace

SessionLink::SessionLink(std::shared_ptr<SessionHost> host, std::shared_ptr<Loop> loop,
                         std::shared_ptr<WaitContext> context, std::string expected_peer)
    : host_(std::move(host)),
      parts_(host_->parts()),
      node_(host_->node()),
      loop_(std::move(loop)),
      counters_(parts_.counters),
      connection_(
          std::make_shared<Connection>(loop_, std::move(context), limits_of(host_->options()))),
      expected_peer_(std::move(expected_peer)),
      small_frame_words_(host_->options().limits.max_frame_bytes / sizeof(Word)) {}

std::shared_ptr<const PeerIdentity> SessionLink::peer() const {
  const auto* const identity = identity_.load(std::memory_order_acquire);
  return identity != nullptr ? *identity : nullptr;
}

void SessionLink::set_peer(std::shared_ptr<const PeerIdentity> peer) {
  identity_.store(&identities_.emplace_back(std::move(peer)), std::memory_order_release);
}

std::string SessionLink::peer_name() const {
  if (const auto known = peer()) return known->name;
  return expected_peer_.empty() ? connection_->description() : expected_peer_;
}

std::uint64_t SessionLink::send(std::span<const Word> frame) {
  output().append(frame, 0, false, {});
  flush();
  return frame.size_bytes();
}

void SessionLink::flush() {
  if (!FlushScope::defer(*connection_)) connection_->flush();
}

void SessionLink::notify_sent(std::span<const std::shared_ptr<DeliveryHook>> hooks,
                              bool as_reply) const {
  const auto known = peer();
  for (const auto& hook : hooks)
    hook->sent_to(peer_name(), known ? known->incarnation : 0, as_reply);
}

// Messages that the peer would refuse are refused here, where the caller learns of it.
bool SessionLink::is_too_large(const Encoder& encoder) const {
  return encoder.words().size() > options().limits.max_frame_bytes / sizeof(Word) ||
         bytes_of(encoder.payloads()) > options().limits.max_payload_bytes;
}

void SessionLink::refuse_size(const Encoder& encoder, const std::string& what) const {
  throw InvalidArgument(
      what + " is too large: " + std::to_string(encoder.words().size() * sizeof(Word)) +
      " bytes and " + std::to_string(bytes_of(encoder.payloads())) +
      " bytes of payloads; the limits are " + std::to_string(options().limits.max_frame_bytes) +
      " and " + std::to_string(options().limits.max_payload_bytes) +
      " (NodeOptions::limits.max_frame_bytes, max_payload_bytes); send large data as Bytes or "
      "tensors, "
      "which travel as payloads");
}

}  // namespace batchrpc
