#include "batchrpc/node/remote_call.hpp"

#include <utility>

#include "base/per_thread.hpp"
#include "batchrpc/base/error.hpp"

namespace batchrpc::detail {

ReplySink::~ReplySink() = default;

IncomingCall::IncomingCall(ReplySink& sink, std::uint64_t id, bool wants_reply, CallContext context,
                           std::span<const Word> segment, std::vector<Bytes> payloads)
    : sink_(&sink),
      id_(id),
      wants_reply_(wants_reply),
      context_(std::move(context)),
      segment_(segment),
      payloads_(std::move(payloads)) {}

IncomingCall::IncomingCall(IncomingCall&& other) noexcept
    : sink_(std::exchange(other.sink_, nullptr)),
      kept_sink_(std::move(other.kept_sink_)),
      id_(other.id_),
      wants_reply_(other.wants_reply_),
      context_(std::move(other.context_)),
      segment_(other.segment_),
      kept_words_(std::move(other.kept_words_)),
      payloads_(std::move(other.payloads_)) {}

IncomingCall::~IncomingCall() {
  if (sink_ == nullptr) return;
  fail(std::make_exception_ptr(
      BrokenPromise("the handler was dropped by the callee before it had answered")));
}

void IncomingCall::keep() {
  if (kept_sink_ || sink_ == nullptr) return;
  kept_sink_ = sink_->shared_sink();
  kept_words_.assign(segment_.begin(), segment_.end());
  segment_ = kept_words_;
}

void IncomingCall::reply(Encoder& encoder) {
  if (sink_ == nullptr) return;
  if (wants_reply_) sink_->send_result(id_, encoder);
  std::exchange(sink_, nullptr)->answered();
}

void IncomingCall::fail(const std::exception_ptr& error, bool began) {
  if (sink_ == nullptr) return;
  if (wants_reply_) sink_->send_error(id_, error, began);
  std::exchange(sink_, nullptr)->answered();
}

namespace {

const std::shared_ptr<NodeCore>*& this_threads_node() noexcept {
  thread_local const std::shared_ptr<NodeCore>* node = nullptr;
  return node;
}

}  // namespace

CurrentNode::CurrentNode(const std::shared_ptr<NodeCore>& core) noexcept
    : outer_(std::exchange(this_threads_node(), &core)) {}

CurrentNode::~CurrentNode() { this_threads_node() = outer_; }

std::shared_ptr<NodeCore> CurrentNode::get() {
  const auto* node = this_threads_node();
  return node != nullptr ? *node : nullptr;
}

std::uint64_t& one_use_values() noexcept {
  thread_local std::uint64_t count = 0;
  return count;
}

namespace {

constexpr std::size_t kKeptEncoders = 4;
constexpr std::size_t kKeptWords = 16 * 1024;

struct KeptEncoders {
  std::vector<std::unique_ptr<Encoder>> encoders;
};
std::vector<std::unique_ptr<Encoder>>& store() { return per_thread<KeptEncoders>().encoders; }

}  // namespace

EncoderLease::EncoderLease() {
  auto& encoders = store();
  if (encoders.empty()) {
    encoder_ = std::make_unique<Encoder>(wire::kEnvelopeWords);
    return;
  }
  encoder_ = std::move(encoders.back());
  encoders.pop_back();
  encoder_->reset(wire::kEnvelopeWords);
}

EncoderLease::~EncoderLease() {
  auto& encoders = store();
  if (encoders.size() < kKeptEncoders && encoder_->words().capacity() <= kKeptWords) {
    encoder_->reset(0);
    encoders.push_back(std::move(encoder_));
  }
}

}  // namespace batchrpc::detail
