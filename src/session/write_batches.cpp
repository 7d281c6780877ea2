#include "session/write_batches.hpp"

#include <algorithm>
#include <utility>

#include "wire/frame.hpp"

namespace batchrpc {
namespace {

// The number of buffers that are kept for the next batches.
constexpr std::size_t kSpares = 4;
constexpr std::size_t kSpareBytes = 64 * 1024;

}  // namespace

void offer_rest(std::span<const std::byte> bytes, std::size_t& skip, WriteBatches::Buffers& buffers,
                std::size_t& count) {
  const std::size_t skipped = std::min(skip, bytes.size());
  skip -= skipped;
  if (skipped < bytes.size()) buffers[count++] = bytes.subspan(skipped);
}

std::vector<std::byte> WriteBatches::take_spare() {
  if (spare_.empty()) return {};
  std::vector<std::byte> buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

void WriteBatches::give_spare(std::vector<std::byte>&& buffer) {
  if (spare_.size() >= kSpares || buffer.capacity() > kSpareBytes) return;
  buffer.clear();
  spare_.push_back(std::move(buffer));
}

WriteBatch& WriteBatches::add(WriteBatch&& batch) {
  sequence_ += batch.count;
  batch.last = sequence_;
  return batches_.emplace_back(std::move(batch));
}

std::span<const std::span<const std::byte>> WriteBatches::unwritten(Buffers& buffers) const {
  const WriteBatch& batch = at(next_);
  std::size_t count = 0;
  std::size_t skip = written_;
  offer_rest(std::span(batch.frames).subspan(batch.begin), skip, buffers, count);
  if (batch.chunk) {
    offer_rest(batch.chunk->bytes, skip, buffers, count);
    offer_rest(std::span(wire::kZeros).first(batch.chunk->padding), skip, buffers, count);
  }
  return std::span(buffers).first(count);
}

void WriteBatches::advance(std::size_t bytes, Dropped dropped) {
  written_ += bytes;
  const WriteBatch& batch = at(next_);
  if (written_ < batch.size()) return;
  written_ = 0;
  if (batch.count == 0) {  // nothing in it is ever sent again
    drop_at(next_, dropped);
  } else {
    ++next_;
  }
  drop_acknowledged(dropped);
}

// Drops the batches that nobody will need again; never the one that is being written.
void WriteBatches::drop_acknowledged(Dropped dropped) {
  while (next_ > 0 && batches_.front().last <= acknowledged_) {
    drop_at(0, dropped);
    --next_;
  }
}

void WriteBatches::drop_at(std::size_t index, Dropped dropped) {
  WriteBatch& batch = index == 0 ? batches_.front() : batches_[index];
  dropped.held.remove(batch.held);
  if (batch.chunk) dropped.payloads.push_back(std::move(batch.chunk->owner));
  give_spare(std::move(batch.frames));
  if (index == 0) {  // the usual case, which costs a tenth
    batches_.pop_front();
  } else {
    batches_.erase(batches_.begin() + static_cast<std::ptrdiff_t>(index));
  }
}

bool WriteBatches::acknowledge(std::uint64_t received, Dropped dropped) {
  if (received > sequence_) return false;
  acknowledged_ = std::max(acknowledged_, received);
  drop_acknowledged(dropped);
  return true;
}

bool WriteBatches::rewind(std::uint64_t received, Dropped dropped) {
  if (received > sequence_ || received < acknowledged_) return false;
  acknowledged_ = received;
  while (!batches_.empty() && batches_.front().last <= received)
    drop_at(0, dropped);
  if (batches_.empty()) return true;
  WriteBatch& batch = batches_.front();
  const std::uint64_t before = batch.last - batch.count;
  if (received > before) {
    batch.begin +=
        wire::skip_reliable(std::span(batch.frames).subspan(batch.begin), received - before);
    batch.count = batch.last - received;
  }
  return true;
}

void WriteBatches::restart() noexcept {
  next_ = 0;
  written_ = 0;
}

void WriteBatches::clear(std::deque<WriteBatch>& batches) {
  batches.swap(batches_);
  spare_ = std::vector<std::vector<std::byte>>();
  restart();
}

void WriteBatches::trim(std::size_t kept) {
  std::erase_if(spare_, [&](const auto& buffer) { return buffer.capacity() > kept; });
  if (spare_.size() > 1) spare_.resize(1);
}

std::size_t WriteBatches::unwritten_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t i = next_; i < batches_.size(); ++i)
    bytes += batches_[i].size();
  return bytes - written_;
}

std::size_t WriteBatches::kept_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < next_; ++i)
    bytes += batches_[i].size();
  return bytes;
}

}  // namespace batchrpc
