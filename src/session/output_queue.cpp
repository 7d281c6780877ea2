#include "session/output_queue.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "wire/frame.hpp"

namespace batchrpc {
namespace {

// Buffers that are used again for the next rounds.
constexpr std::size_t kSpares = 4;
constexpr std::size_t kSpareBytes = 64 * 1024;

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
  const std::size_t before = queued_.size();
  last_frame_ = before;
  append_bytes(queued_, std::as_bytes(frame));
  const wire::FrameKind kind = wire::kind_of(frame);
  if (wire::is_reliable(kind)) ++queued_count_;
  std::uint64_t large_bytes = 0;
  if (!payloads.empty()) {
    if (wire::has_inline_payloads(frame)) {
      for (const Bytes& payload : payloads) {
        append_bytes(queued_, payload.span());
        append_bytes(queued_,
                     std::span(kZeros).first(wire::padded(payload.size()) - payload.size()));
      }
    } else {
      for (const Bytes& payload : payloads)
        large_bytes += payload.size();
      large_.push_back({.call = call,
                        .of_reply = of_reply,
                        .payloads = std::move(payloads),
                        .index = 0,
                        .offset = 0,
                        .bytes = large_bytes});
    }
  }
  const Place place{.begin = appended_, .size = queued_.size() - before};
  appended_ += place.size;
  if (kind == wire::FrameKind::call) {
    queued_held_.calls += place.size;
    hold({.calls = place.size + large_bytes});
  } else if (kind == wire::FrameKind::result || kind == wire::FrameKind::error) {
    queued_held_.replies += place.size;
    hold({.replies = place.size + large_bytes});
  }
  return place;
}

void OutputQueue::append_first(std::span<const Word> frame) {
  const std::lock_guard lock(mutex_);
  if (!closed_) append_bytes(first_, std::as_bytes(frame));
}

void OutputQueue::append_acknowledgement(std::span<const Word> frame) {
  const std::lock_guard lock(mutex_);
  if (queued_.empty()) append_locked(frame, 0, false, {});
}

void OutputQueue::attach(Stream* stream) {
  const std::lock_guard lock(mutex_);
  stream_ = stream;
}

void OutputQueue::open() {
  const std::lock_guard lock(mutex_);
  open_ = true;
}

void OutputQueue::wait_for_writer(std::unique_lock<std::mutex>& lock) {
  idle_.wait(lock, [this] { return !writing_now_; });
}

void OutputQueue::detach() {
  std::unique_lock lock(mutex_);
  stream_ = nullptr;
  wait_for_writer(lock);
  first_ = std::vector<std::byte>();
  next_ = 0;
  written_ = 0;
  chunk_bytes_ = kFirstChunkBytes;
  at_once_ = 0;
  open_ = false;
  busy_ = false;
  blocked_ = false;
  error_ = {};
}

void OutputQueue::close() {
  // Destroyed without the lock: memory may have the user's deleter.
  std::deque<LargePayloads> large;
  std::vector<LargePayloads> unanswered;
  std::vector<LargePayloads> paused;
  std::deque<WriteBatch> rounds;
  std::vector<Bytes> released;
  std::vector<Watched> watches;
  std::unique_lock lock(mutex_);
  closed_ = true;
  wait_for_writer(lock);
  stream_ = nullptr;
  first_ = std::vector<std::byte>();
  queued_ = std::vector<std::byte>();
  spare_ = std::vector<std::vector<std::byte>>();
  next_ = 0;
  written_ = 0;
  rounds.swap(batches_);
  large.swap(large_);
  unanswered.swap(unanswered_);
  paused.swap(paused_);
  released.swap(released_);
  watches.swap(watches_);
  queued_held_ = {};
  held_calls_ = 0;
  held_paused_ = 0;
  held_replies_.store(0, std::memory_order_relaxed);
  lock.unlock();
}

OutputQueue::Flushed OutputQueue::flush() {
  std::unique_lock lock(mutex_);
  if (busy_) return Flushed::all;
  return write_out(lock);
}

OutputQueue::Flushed OutputQueue::flush_blocked() {
  std::unique_lock lock(mutex_);
  if (!blocked_) return Flushed::all;  // by a stream before this one
  blocked_ = false;
  busy_ = false;
  return write_out(lock);
}

bool OutputQueue::is_blocked() const {
  const std::lock_guard lock(mutex_);
  return blocked_;
}

OutputQueue::Flushed OutputQueue::write_out(std::unique_lock<std::mutex>& lock) {
  if (stream_ == nullptr || closed_) return Flushed::all;
  if (error_) return Flushed::failed;
  while (fill()) {
    Buffers memory;
    const auto buffers = buffers_to_write(memory);
    std::size_t offered = 0;
    for (const auto& buffer : buffers)
      offered += buffer.size();
    Stream* const stream = stream_;
    busy_ = true;
    writing_now_ = true;
    auto leaving = take_watches();
    lock.unlock();
    for (const auto& watch : std::exchange(leaving, {}))
      watch->taken();
    const IoResult result = stream->try_write(buffers);
    lock.lock();
    writing_now_ = false;
    if (closed_ || stream_ != stream) {  // by who waits for this thread
      idle_.notify_all();
      return Flushed::all;
    }
    if (result.error) {
      error_ = result.error;
      return Flushed::failed;
    }
    fit_chunks(result.bytes, result.bytes < offered);
    advance(result.bytes);
    if (result.bytes < offered) {
      blocked_ = true;
      return Flushed::blocked;
    }
  }
  busy_ = false;
  at_once_ = 0;
  if (!released_.empty()) {
    const std::vector<Bytes> released = std::exchange(released_, {});
    lock.unlock();
  }
  return Flushed::all;
}

std::span<const std::span<const std::byte>> OutputQueue::buffers_to_write(Buffers& buffers) const {
  std::size_t count = 0;
  std::size_t skip = written_;
  const auto offer = [&](std::span<const std::byte> bytes) {
    const std::size_t skipped = std::min(skip, bytes.size());
    skip -= skipped;
    if (skipped < bytes.size()) buffers[count++] = bytes.subspan(skipped);
  };
  if (!first_.empty()) {
    offer(first_);
  } else {
    const WriteBatch& round = batches_[next_];
    offer(round.frames);
    if (round.chunk) {
      offer(round.chunk->bytes);
      offer(std::span(kZeros).first(round.chunk->padding));
    }
  }
  return std::span(buffers).first(count);
}

// Whether there is anything to write.
bool OutputQueue::fill() {
  if (!first_.empty()) return true;
  return open_ && (next_ < batches_.size() || take_batch());
}

bool OutputQueue::take_batch() {
  if (queued_.empty() && large_.empty()) return false;
  WriteBatch& round = batches_.emplace_back();
  if (!spare_.empty()) {
    round.frames = std::move(spare_.back());
    spare_.pop_back();
  }
  std::swap(round.frames, queued_);
  round.count = std::exchange(queued_count_, 0);
  round.held = std::exchange(queued_held_, {});
  taken_ = appended_;
  take_chunk(round);
  if (round.frames.empty()) {
    std::swap(round.frames, queued_);
    queued_held_ = round.held;
    batches_.pop_back();
    return false;
  }
  sequence_ += round.count;
  round.last = sequence_;
  wire::set_acknowledged(std::span(round.frames).subspan(last_frame_),
                         received_.load(std::memory_order_relaxed));
  return true;
}

// Whether anything is left to send.
bool OutputQueue::LargePayloads::skip_what_is_sent() {
  while (index < payloads.size() && offset == payloads[index].size()) {
    offset = 0;
    ++index;
  }
  return index < payloads.size();
}

void OutputQueue::take_chunk(WriteBatch& round) {
  while (!large_.empty() && !large_.front().skip_what_is_sent()) {  // all are empty
    release(std::move(large_.front()));
    large_.pop_front();
  }
  if (large_.empty()) return;
  LargePayloads sender = std::move(large_.front());
  large_.pop_front();
  const Bytes& payload = sender.payloads[sender.index];
  const std::size_t eager = eager_left(sender);
  const std::size_t size = std::min({chunk_bytes_, payload.size() - sender.offset, eager});
  const auto header =
      wire::plain_frame({.kind = wire::FrameKind::chunk,
                         .flags = sender.of_reply ? wire::kOfReply : std::uint16_t{0},
                         .number = static_cast<std::uint32_t>(sender.index),
                         .id = sender.call,
                         .value = size});
  last_frame_ = round.frames.size();
  append_bytes(round.frames, std::as_bytes(std::span(header)));
  ++round.count;
  round.chunk = Chunk{.owner = payload,
                      .bytes = payload.span().subspan(sender.offset, size),
                      .padding = wire::padded(size) - size};
  sender.offset += size;
  if (sender.skip_what_is_sent()) {
    if (size == eager) {
      unanswered_.push_back(std::move(sender));
    } else {
      large_.push_back(std::move(sender));
    }
  } else {
    (sender.of_reply ? round.held.replies : round.held.calls) += sender.bytes;
    release(std::move(sender));
  }
}

// What may leave of it before the peer asks for the rest.
std::size_t OutputQueue::eager_left(const LargePayloads& sender) const {
  if (sender.of_reply || sender.answered) return std::numeric_limits<std::size_t>::max();
  return wire::kEagerBytes - std::min(wire::kEagerBytes, sender.bytes - sender.rest());
}

void OutputQueue::release(LargePayloads sent) {
  std::move(sent.payloads.begin(), sent.payloads.end(), std::back_inserter(released_));
}

// A chunk is to be as large as what the stream takes without a wait.
void OutputQueue::fit_chunks(std::size_t taken, bool blocked) {
  at_once_ += taken;
  std::size_t steps = chunk_bytes_ / kChunkStep;
  if (blocked) {
    steps = std::max(steps / 2, std::exchange(at_once_, 0) / kChunkStep);
  } else {  // all that was sent at once may be one chunk the next time
    steps = std::max(steps, (at_once_ + kChunkStep - 1) / kChunkStep);
  }
  chunk_bytes_ = std::clamp(steps * kChunkStep, kChunkStep, kMaxChunkBytes);
}

void OutputQueue::advance(std::size_t bytes) {
  written_ += bytes;
  written_bytes_ += bytes;
  if (!first_.empty()) {
    if (written_ < first_.size()) return;
    first_ = std::vector<std::byte>();
    written_ = 0;
    return;
  }
  if (written_ < batches_[next_].size()) return;
  written_ = 0;
  if (batches_[next_].count == 0) {  // is not sent again
    drop_at(next_);
  } else {
    ++next_;
  }
  drop_acknowledged();
}

// Drops the rounds that nobody will need again; never one that is being written.
void OutputQueue::drop_acknowledged() {
  while (next_ > 0 && batches_.front().last <= acknowledged_) {
    drop_at(0);
    --next_;
  }
}

void OutputQueue::drop_at(std::size_t index) {
  WriteBatch& round = batches_[index];
  let_go(round.held);
  if (round.chunk) released_.push_back(std::move(round.chunk->owner));
  if (spare_.size() < kSpares && round.frames.capacity() <= kSpareBytes) {
    round.frames.clear();
    spare_.push_back(std::move(round.frames));
  }
  batches_.erase(batches_.begin() + static_cast<std::ptrdiff_t>(index));
}

void OutputQueue::hold(const Held& more) {
  held_calls_ += more.calls;
  held_replies_.store(held_replies() + more.replies, std::memory_order_relaxed);
}

void OutputQueue::let_go(const Held& held) {
  held_calls_ -= held.calls;
  held_replies_.store(held_replies() - held.replies, std::memory_order_relaxed);
}

bool OutputQueue::acknowledge(std::uint64_t received) {
  std::vector<Bytes> released;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  if (received > sequence_) return false;
  acknowledged_ = std::max(acknowledged_, received);
  drop_acknowledged();
  released.swap(released_);
  return true;
}

bool OutputQueue::rewind(std::uint64_t received) {
  std::vector<Bytes> released;
  const std::lock_guard lock(mutex_);
  if (received > sequence_ || received < acknowledged_) return false;
  acknowledged_ = received;
  while (!batches_.empty() && batches_.front().last <= received)
    drop_at(0);
  released.swap(released_);
  if (batches_.empty()) return true;
  WriteBatch& round = batches_.front();
  const std::uint64_t before = round.last - round.count;
  if (received > before) {
    const std::size_t there = wire::skip_reliable(round.frames, received - before);
    round.frames.erase(round.frames.begin(),
                       round.frames.begin() + static_cast<std::ptrdiff_t>(there));
    round.count = round.last - received;
  }
  return true;
}

}  // namespace batchrpc
