#include "node/output_queue.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include "wire/frame.hpp"

namespace batchrpc {
namespace {

// Large enough that its own system call does not show, small enough that a call behind it does not
// wait.
constexpr std::size_t kChunkBytes = 256 * 1024;
// What a queue keeps between bursts.
constexpr std::size_t kKeptBytes = 4 * 1024;

constexpr std::array<std::byte, 8> kZeros{};

void append_bytes(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

OutputQueue::Place OutputQueue::append(std::span<const Word> frame, std::uint64_t call,
                                       bool of_reply, std::vector<Bytes>&& payloads) {
  const std::lock_guard lock(mutex_);
  return append_locked(frame, call, of_reply, std::move(payloads));
}

OutputQueue::Place OutputQueue::append_locked(std::span<const Word> frame, std::uint64_t call,
                                              bool of_reply, std::vector<Bytes>&& payloads) {
  if (closed_) return {.begin = appended_};
  std::vector<std::byte>& to = open_ ? queued_ : held_;
  const std::size_t before = to.size();
  append_bytes(to, std::as_bytes(frame));
  if (!payloads.empty()) {
    if (wire::has_inline_payloads(frame)) {
      for (const Bytes& payload : payloads) {
        append_bytes(to, payload.span());
        append_bytes(to, std::span(kZeros).first(wire::padded(payload.size()) - payload.size()));
      }
    } else {
      large_.push_back({.call = call,
                        .of_reply = of_reply,
                        .payloads = std::move(payloads),
                        .index = 0,
                        .offset = 0});
    }
  }
  const Place place{.begin = appended_, .size = to.size() - before};
  appended_ += place.size;
  return place;
}

bool OutputQueue::retract_locked(Place place, std::vector<Bytes>& payloads) {
  if (place.begin < taken_) return false;
  if (closed_) return true;
  std::vector<std::byte>& from = open_ ? queued_ : held_;
  const auto frame =
      std::span(from).last(appended_ - place.begin).first(static_cast<std::size_t>(place.size));
  cut_off_locked(wire::id_of(frame), payloads);
  wire::make_void(frame);
  return true;
}

// Takes the payloads of a call out of those that are to be sent.
std::optional<OutputQueue::LargePayloads> OutputQueue::take(std::deque<LargePayloads>& from,
                                                            std::uint64_t call) {
  const auto at = std::find_if(from.begin(), from.end(), [&](const LargePayloads& entry) {
    return entry.call == call && !entry.of_reply;
  });
  if (at == from.end()) return std::nullopt;
  std::optional<LargePayloads> taken = std::move(*at);
  from.erase(at);
  return taken;
}

void OutputQueue::pause_locked(std::uint64_t call) {
  if (auto payloads = take(large_, call)) paused_.push_back(std::move(*payloads));
}

void OutputQueue::resume_locked(std::uint64_t call) {
  if (auto payloads = take(paused_, call)) large_.push_back(std::move(*payloads));
}

bool OutputQueue::cut_off_locked(std::uint64_t call, std::vector<Bytes>& payloads) {
  auto large = take(large_, call);
  if (!large) large = take(paused_, call);
  if (!large) return false;
  const bool incomplete = large->skip_what_is_sent();
  std::move(large->payloads.begin(), large->payloads.end(), std::back_inserter(payloads));
  return incomplete;
}

void OutputQueue::append_first(std::span<const Word> frame) {
  const std::lock_guard lock(mutex_);
  if (!closed_) append_bytes(queued_, std::as_bytes(frame));
}

void OutputQueue::attach(Stream* stream) {
  const std::lock_guard lock(mutex_);
  stream_ = stream;
}

void OutputQueue::open() {
  const std::lock_guard lock(mutex_);
  open_ = true;
  append_bytes(queued_, held_);
  held_ = {};
}

void OutputQueue::close() {
  // Destroyed without the lock: memory may have the user's deleter.
  std::deque<LargePayloads> large;
  std::deque<LargePayloads> paused;
  std::vector<Bytes> released;
  std::unique_lock lock(mutex_);
  closed_ = true;
  idle_.wait(lock, [this] { return !writing_now_; });
  stream_ = nullptr;
  held_ = {};
  queued_ = {};
  writing_ = {};
  written_ = 0;
  if (chunk_) released_.push_back(std::move(chunk_->owner));
  chunk_.reset();
  large.swap(large_);
  paused.swap(paused_);
  released.swap(released_);
  lock.unlock();
}

OutputQueue::Flushed OutputQueue::flush() {
  std::unique_lock lock(mutex_);
  if (busy_) return Flushed::all;
  return write_out(lock);
}

OutputQueue::Flushed OutputQueue::flush_blocked() {
  std::unique_lock lock(mutex_);
  busy_ = false;
  return write_out(lock);
}

OutputQueue::Flushed OutputQueue::write_out(std::unique_lock<std::mutex>& lock) {
  if (stream_ == nullptr || closed_) return Flushed::all;
  if (error_) return Flushed::failed;
  while (fill()) {
    std::array<std::span<const std::byte>, 3> buffers;
    std::size_t count = 0;
    std::size_t offered = 0;
    const auto offer = [&](std::span<const std::byte> bytes) {
      if (bytes.empty()) return;
      buffers[count++] = bytes;
      offered += bytes.size();
    };
    offer(std::span(writing_).subspan(written_));
    if (chunk_) {
      offer(chunk_->rest);
      offer(std::span(kZeros).first(chunk_->padding));
    }
    busy_ = true;
    writing_now_ = true;
    lock.unlock();
    const IoResult result = stream_->try_write(std::span(buffers).first(count));
    lock.lock();
    writing_now_ = false;
    if (closed_) {
      idle_.notify_all();
      return Flushed::all;
    }
    if (result.error) {
      error_ = result.error;
      return Flushed::failed;
    }
    advance(result.bytes);
    if (result.bytes < offered) return Flushed::blocked;
  }
  busy_ = false;
  if (!released_.empty()) {
    const std::vector<Bytes> released = std::exchange(released_, {});
    lock.unlock();
  }
  return Flushed::all;
}

// Whether there is anything to write.
bool OutputQueue::fill() {
  if (written_ < writing_.size() || chunk_) return true;
  writing_.clear();
  written_ = 0;
  std::swap(writing_, queued_);
  if (open_) {
    taken_ = appended_;
    take_chunk();
  }
  return !writing_.empty();
}

// Whether anything is left to send.
bool OutputQueue::LargePayloads::skip_what_is_sent() {
  while (index < payloads.size() && offset == payloads[index].size()) {
    offset = 0;
    ++index;
  }
  return index < payloads.size();
}

std::size_t OutputQueue::LargePayloads::rest() const {
  std::size_t bytes = 0;
  for (std::size_t i = index; i < payloads.size(); ++i)
    bytes += payloads[i].size();
  return bytes - offset;
}

void OutputQueue::take_chunk() {
  while (!large_.empty() && !large_.front().skip_what_is_sent()) {  // all are empty
    release(std::move(large_.front()));
    large_.pop_front();
  }
  if (large_.empty()) return;
  LargePayloads sender = std::move(large_.front());
  large_.pop_front();
  const Bytes& payload = sender.payloads[sender.index];
  const std::size_t size = std::min(kChunkBytes, payload.size() - sender.offset);
  const auto header =
      wire::plain_frame({.kind = wire::FrameKind::chunk,
                         .flags = sender.of_reply ? wire::kOfReply : std::uint16_t{0},
                         .number = static_cast<std::uint32_t>(sender.index),
                         .id = sender.call,
                         .value = size});
  append_bytes(writing_, std::as_bytes(std::span(header)));
  chunk_ = Chunk{.owner = payload,
                 .rest = payload.span().subspan(sender.offset, size),
                 .padding = wire::padded(size) - size};
  sender.offset += size;
  if (sender.skip_what_is_sent()) {
    large_.push_back(std::move(sender));
  } else {
    release(std::move(sender));
  }
}

void OutputQueue::release(LargePayloads sent) {
  std::move(sent.payloads.begin(), sent.payloads.end(), std::back_inserter(released_));
}

void OutputQueue::advance(std::size_t bytes) {
  const std::size_t frames = std::min(bytes, writing_.size() - written_);
  written_ += frames;
  bytes -= frames;
  if (!chunk_) return;
  const std::size_t payload = std::min(bytes, chunk_->rest.size());
  chunk_->rest = chunk_->rest.subspan(payload);
  chunk_->padding -= bytes - payload;
  if (written_ == writing_.size() && chunk_->rest.empty() && chunk_->padding == 0) {
    released_.push_back(std::move(chunk_->owner));
    chunk_.reset();
  }
}

std::size_t OutputQueue::queued_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = held_.size() + queued_.size() + (writing_.size() - written_);
  if (chunk_) bytes += chunk_->rest.size() + chunk_->padding;
  for (const LargePayloads& entry : large_)
    bytes += entry.rest();
  return error_ ? 0 : bytes;
}

std::size_t OutputQueue::paused_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const LargePayloads& entry : paused_)
    bytes += entry.rest();
  return error_ ? 0 : bytes;
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
  if (queued_.empty() && queued_.capacity() > kKeptBytes) queued_ = {};
  if (written_ == writing_.size() && writing_.capacity() > kKeptBytes) writing_ = {}, written_ = 0;
}

}  // namespace batchrpc
