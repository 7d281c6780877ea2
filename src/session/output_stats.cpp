#include "session/output_queue.hpp"

// How much an output queue holds, and giving memory back.
namespace batchrpc {
namespace {

// What a queue keeps between bursts.
constexpr std::size_t kKeptBytes = 4 * 1024;

}  // namespace

std::size_t OutputQueue::LargePayloads::rest() const {
  std::size_t left = 0;
  for (std::size_t i = index; i < payloads.size(); ++i)
    left += payloads[i].size();
  return left - offset;
}

template <class Calls>
std::size_t OutputQueue::rest_of(const Calls& all) {
  std::size_t bytes = 0;
  for (const LargePayloads& entry : all)
    bytes += entry.rest();
  return bytes;
}

std::size_t OutputQueue::queued_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = first_.size() + queued_.size() - written_;
  for (std::size_t i = next_; i < batches_.size(); ++i)
    bytes += batches_[i].size();
  bytes += rest_of(large_);
  return bytes;
}

std::size_t OutputQueue::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < next_; ++i)
    bytes += batches_[i].size();
  return bytes;
}

std::uint64_t OutputQueue::written_bytes() const {
  const std::lock_guard lock(mutex_);
  return written_bytes_;
}

std::uint64_t OutputQueue::unacknowledged() const {
  const std::lock_guard lock(mutex_);
  return sequence_ - acknowledged_;
}

std::size_t OutputQueue::unanswered_bytes() const {
  const std::lock_guard lock(mutex_);
  return rest_of(unanswered_);
}

std::size_t OutputQueue::paused_bytes() const {
  const std::lock_guard lock(mutex_);
  return rest_of(paused_);
}

std::size_t OutputQueue::unconfirmed_bytes() const {
  const std::lock_guard lock(mutex_);
  return stream_ != nullptr && !error_ ? stream_->unconfirmed_bytes() : 0;
}

void OutputQueue::give_back() {
  std::vector<Bytes> released;
  const std::lock_guard lock(mutex_);
  released.swap(released_);
}

std::error_code OutputQueue::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void OutputQueue::trim() {
  const std::lock_guard lock(mutex_);
  if (busy_) return;
  if (queued_.empty() && queued_.capacity() > kKeptBytes) queued_ = std::vector<std::byte>();
  std::erase_if(spare_, [](const auto& buffer) { return buffer.capacity() > kKeptBytes; });
  if (spare_.size() > 1) spare_.resize(1);
}

}  // namespace batchrpc
