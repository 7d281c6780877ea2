#include "session/output_queue.hpp"

#include <array>
#include <deque>
#include <new>
#include <optional>
#include <utility>

#include "wire/frame.hpp"

// What is appended, and what becomes of it: acknowledged, sent again, dropped.
namespace batchrpc {
namespace {

// What a queue keeps between bursts.
constexpr std::size_t kKeptBytes = 4 * 1024;

void append_bytes(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

// The caller must hold the lock.
void OutputQueue::append_frame(std::span<const Word> frame) {
  queued_.last_frame = queued_.frames.size();
  append_bytes(queued_.frames, std::as_bytes(frame));
  if (wire::is_reliable(wire::kind_of(frame))) ++queued_.count;
}

// Flattened (the compiler inlines all that it calls), because every frame goes through it.
[[gnu::flatten]] OutputQueue::Place OutputQueue::append(std::span<const Word> frame,
                                                        std::uint64_t call, bool of_reply,
                                                        std::vector<Bytes>&& payloads,
                                                        std::shared_ptr<FrameWatch> watch) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::closed) return {.begin = appended_};
  const std::size_t before = queued_.frames.size();
  append_frame(frame);
  std::uint64_t large_bytes = 0;
  if (!payloads.empty()) {
    if (wire::has_inline_payloads(frame)) {
      for (const Bytes& payload : payloads) {
        append_bytes(queued_.frames, payload.span());
        append_bytes(queued_.frames,
                     std::span(wire::kZeros).first(wire::padded(payload.size()) - payload.size()));
      }
    } else {
      large_bytes = bytes_of(payloads);
      payloads_.add(call, of_reply, std::move(payloads), large_bytes);
    }
  }
  const Place place{
      .begin = appended_, .size = queued_.frames.size() - before, .has_chunks = large_bytes > 0};
  appended_ += place.size;
  const wire::FrameKind kind = wire::kind_of(frame);
  if (kind == wire::FrameKind::call) {
    queued_.held.calls += place.size;
    held_.add({.calls = place.size + large_bytes});
  } else if (kind == wire::FrameKind::result || kind == wire::FrameKind::error ||
             kind == wire::FrameKind::credit) {
    queued_.held.replies += place.size;
    held_.add({.replies = place.size + large_bytes});
  }
  if (watch) watches_.push_back({place.begin, std::move(watch)});
  return place;
}

void OutputQueue::append_first(std::span<const Word> frame) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::closed) append_bytes(first_, std::as_bytes(frame));
}

void OutputQueue::append_acknowledgement(std::span<const Word> frame) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::closed || !queued_.frames.empty()) return;
  append_frame(frame);
  appended_ += queued_.frames.size();
}

bool OutputQueue::retract(Place place, std::vector<Bytes>& payloads) {
  const std::lock_guard lock(mutex_);
  if (place.begin < taken_) return false;
  if (state_ == State::closed) return true;
  const auto frame = std::span(queued_.frames).last(appended_ - place.begin).first(place.size);
  cut_off_of(wire::id_of(frame), payloads);
  wire::make_void(frame);
  --queued_.count;  // only calls are retracted
  return true;
}

void OutputQueue::pause(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  held_.pause(payloads_.pause(call));
}

void OutputQueue::resume(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  held_.resume(payloads_.resume(call));
}

bool OutputQueue::cut_off(std::uint64_t call, std::vector<Bytes>& payloads) {
  const std::lock_guard lock(mutex_);
  return cut_off_of(call, payloads);
}

// The caller must hold the lock.
bool OutputQueue::cut_off_of(std::uint64_t call, std::vector<Bytes>& payloads) {
  const auto cut = payloads_.cut_off(call, payloads);
  if (!cut) return false;
  if (cut->was_paused) held_.resume(cut->bytes);
  if (cut->was_begun) {  // they count until the chunks that have left are acknowledged
    queued_.held.calls += cut->bytes;
  } else {
    held_.remove({.calls = cut->bytes});
  }
  return cut->incomplete;
}

void OutputQueue::attach(Stream* stream) {
  const std::lock_guard lock(mutex_);
  stream_ = stream;
}

void OutputQueue::open() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::closed) state_ = State::open;
}

void OutputQueue::detach() {
  std::unique_lock lock(mutex_);
  stream_ = nullptr;
  idle_.wait(lock, [this] { return writer_ != Writer::writing; });
  first_ = std::vector<std::byte>();
  first_written_ = 0;
  batches_.restart();
  chunk_size_ = ChunkSize();
  if (state_ == State::open) state_ = State::handshake;
  writer_ = Writer::none;
  error_ = {};
}

void OutputQueue::close() {
  // Destroyed without the lock: their memory may have the user's deleter. An empty deque takes
  // memory. If there is none, all stays here until this is destroyed.
  struct Rest {
    OutgoingPayloads payloads;
    std::deque<WriteBatch> batches;
    std::vector<Bytes> released;
    Watches watches;
  };
  std::optional<Rest> rest;
  try {
    rest.emplace();
  } catch (const std::bad_alloc&) {  // NOLINT
  }
  std::unique_lock lock(mutex_);
  state_ = State::closed;
  idle_.wait(lock, [this] { return writer_ != Writer::writing; });
  stream_ = nullptr;
  first_ = std::vector<std::byte>();
  first_written_ = 0;
  queued_ = Queued();
  held_.clear();
  if (!rest) return;
  batches_.clear(rest->batches);
  rest->payloads.swap(payloads_);
  rest->released.swap(released_);
  rest->watches.swap(watches_);
  lock.unlock();
}

bool OutputQueue::acknowledge(std::uint64_t received) {
  std::vector<Bytes> released;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  if (!batches_.acknowledge(received, dropped())) return false;
  released.swap(released_);
  return true;
}

bool OutputQueue::rewind(std::uint64_t received) {
  std::vector<Bytes> released;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  if (!batches_.rewind(received, dropped())) return false;
  released.swap(released_);
  return true;
}

void OutputQueue::give_back() {
  std::vector<Bytes> released;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  released.swap(released_);
}

void OutputQueue::trim() {
  const std::lock_guard lock(mutex_);
  if (writer_ != Writer::none) return;
  if (queued_.frames.empty() && queued_.frames.capacity() > kKeptBytes) {
    queued_.frames = std::vector<std::byte>();
  }
  batches_.trim(kKeptBytes);
}

std::size_t OutputQueue::queued_bytes() const {
  const std::lock_guard lock(mutex_);
  return first_.size() - first_written_ + queued_.frames.size() + batches_.unwritten_bytes() +
         payloads_.ready_bytes();
}

std::size_t OutputQueue::ungranted_bytes() const {
  const std::lock_guard lock(mutex_);
  return payloads_.ungranted_bytes();
}

std::size_t OutputQueue::paused_bytes() const {
  const std::lock_guard lock(mutex_);
  return payloads_.paused_bytes();
}

std::size_t OutputQueue::unconfirmed_bytes() const {
  const std::lock_guard lock(mutex_);
  return stream_ != nullptr && !error_ ? stream_->unconfirmed_bytes() : 0;
}

std::size_t OutputQueue::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return batches_.kept_bytes();
}

std::uint64_t OutputQueue::written_bytes() const {
  const std::lock_guard lock(mutex_);
  return written_bytes_;
}

OutputQueue::Frames OutputQueue::frames() const {
  const std::lock_guard lock(mutex_);
  return {.sent = batches_.sent(), .acknowledged = batches_.sent() - batches_.unacknowledged()};
}

std::error_code OutputQueue::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace batchrpc
