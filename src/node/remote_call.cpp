#include "batchrpc/node/remote_call.hpp"

#include <algorithm>
#include <utility>

#include "base/per_thread.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/node/caller.hpp"

namespace batchrpc::detail {

ReplySink::~ReplySink() = default;
CallPlace::~CallPlace() = default;

void ReplyHandler::abandon() noexcept {
  Reply reply;
  reply.error =
      std::make_exception_ptr(BrokenPromise("the call was dropped before it had a reply"));
  (*this)(reply);
}

std::exception_ptr as_of_reply(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error.may_have_run() ? thrown : make_error(error.code(), error.what(), true);
  } catch (...) {
    return thrown;
  }
}

void IncomingCall::break_promise() noexcept {
  fail(std::make_exception_ptr(
      BrokenPromise("the handler was dropped by the callee before it had answered")));
}

void own_payloads(std::vector<Bytes>& payloads) {
  for (Bytes& payload : payloads) {
    if (!payload.owner() && !payload.empty()) payload = Bytes::copy(payload.span());
  }
}

void IncomingCall::keep() {
  if (kept_sink_ || sink_ == nullptr) return;
  own_payloads();
  kept_words_ = std::make_unique_for_overwrite<Word[]>(segment_.size());
  std::copy(segment_.begin(), segment_.end(), kept_words_.get());
  segment_ = {kept_words_.get(), segment_.size()};
  kept_sink_ = sink_->keep();
  context_ = CallContext(context_);
}

std::size_t IncomingCall::bytes() const noexcept {
  std::size_t bytes = segment_.size_bytes();
  for (const Bytes& payload : payloads_)
    bytes += payload.size();
  return bytes;
}

void IncomingCall::drop_arguments() noexcept {
  segment_ = {};
  payloads_.clear();
  kept_words_.reset();
}

void IncomingCall::end() {
  ReplySink* const sink = std::exchange(sink_, nullptr);
  if (kept_sink_) sink->answered();
  lock_.unlock();
  place_.reset();
}

void IncomingCall::reply(Encoder& encoder) {
  if (sink_ == nullptr) return;
  if (wants_reply_) sink_->send_result(id_, encoder);
  end();
}

void IncomingCall::fail(const std::exception_ptr& error, bool began) {
  if (sink_ == nullptr) return;
  if (wants_reply_) {
    try {
      std::rethrow_exception(error);
    } catch (const DidNotRun& other) {
      sink_->send_error(id_, other.error, false);
    } catch (...) {
      sink_->send_error(id_, error, began);
    }
  }
  end();
}

namespace {

const std::shared_ptr<NodeCore>*& this_threads_node() noexcept {
  thread_local const std::shared_ptr<NodeCore>* node = nullptr;
  return node;
}

}  // namespace

CurrentNode::CurrentNode(const std::shared_ptr<NodeCore>& core) noexcept
    : outer_(std::exchange(this_threads_node(), &core)) {}

CurrentNode::CurrentNode() noexcept : outer_(std::exchange(this_threads_node(), nullptr)) {}

CurrentNode::~CurrentNode() { this_threads_node() = outer_; }

std::shared_ptr<NodeCore> CurrentNode::get() {
  const auto* node = this_threads_node();
  return node != nullptr ? *node : nullptr;
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
}

EncoderLease::~EncoderLease() {
  auto& encoders = store();
  if (encoders.size() >= kKeptEncoders || encoder_->words().capacity() > kKeptWords) return;
  encoder_->reset(wire::kEnvelopeWords);
  encoders.push_back(std::move(encoder_));
}

}  // namespace batchrpc::detail
