#include "batchrpc/call/remote_call.hpp"

#include <utility>
#include <vector>

#include "base/per_thread.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/call/caller.hpp"

namespace batchrpc::detail {

bool SubmittedCall::cancel() const noexcept {
  const std::shared_ptr<Submitter> alive = submitter.lock();
  return alive && alive->cancel_call(id);
}

void ReplyHandler::abandon() noexcept {
  Reply reply;
  reply.error =
      std::make_exception_ptr(BrokenPromise("the call was destroyed before it was answered"));
  (*this)(reply);
}

std::exception_ptr as_of_reply(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error.may_have_run() ? thrown : copy_error(error, true);
  } catch (...) {
    return thrown;
  }
}

namespace {

const std::shared_ptr<LocalNode>*& this_threads_node() noexcept {
  thread_local const std::shared_ptr<LocalNode>* node = nullptr;
  return node;
}

}  // namespace

CurrentNode::CurrentNode(const std::shared_ptr<LocalNode>& node) noexcept
    : outer_(std::exchange(this_threads_node(), &node)) {}

CurrentNode::CurrentNode() noexcept : outer_(std::exchange(this_threads_node(), nullptr)) {}

CurrentNode::~CurrentNode() { this_threads_node() = outer_; }

std::shared_ptr<LocalNode> CurrentNode::get() {
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
