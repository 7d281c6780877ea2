#include <algorithm>
#include <new>
#include <utility>

#include "session/output_queue.hpp"

// How an output queue writes: the queued frames become a batch, which is written at once.
namespace batchrpc {

OutputQueue::Flushed OutputQueue::flush() {
  std::unique_lock lock(mutex_);
  if (writer_ != Writer::none) return Flushed::all;
  return write_out(std::move(lock));
}

OutputQueue::Flushed OutputQueue::flush_blocked() {
  std::unique_lock lock(mutex_);
  if (writer_ != Writer::blocked) return Flushed::all;  // an earlier stream was blocked
  writer_ = Writer::none;
  return write_out(std::move(lock));
}

// Holds the lock, except during the writes themselves. Without memory the output is incomplete, so
// the stream is of no more use. The reading side finds its end.
OutputQueue::Flushed OutputQueue::write_out(std::unique_lock<std::mutex> lock) {
  try {
    if (stream_ == nullptr || state_ == State::closed) return Flushed::all;
    while (fill()) {
      WriteBatches::Buffers memory;
      const auto buffers = buffers_to_write(memory);
      std::size_t offered = 0;
      for (const auto& buffer : buffers)
        offered += buffer.size();
      Stream* const stream = stream_;
      writer_ = Writer::writing;
      Watches leaving = take_watches();
      lock.unlock();
      for (const Watched& watched : std::exchange(leaving, {}))
        watched.watch->taken();
      const IoResult result = stream->try_write(buffers);
      lock.lock();
      writer_ = Writer::none;
      if (state_ == State::closed ||
          stream_ != stream) {  // close() or detach() waits for this thread
        idle_.notify_all();
        return Flushed::all;
      }
      if (result.error) {
        error_ = result.error;
        writer_ = Writer::failed;
        return Flushed::failed;
      }
      chunk_size_.fit(result.bytes, result.bytes < offered);
      advance(result.bytes);
      if (result.bytes < offered) {
        writer_ = Writer::blocked;
        return Flushed::blocked;
      }
    }
    chunk_size_.all_sent();
    const std::vector<Bytes> released = std::exchange(released_, {});
    lock.unlock();  // unlocks before these are destroyed
    return Flushed::all;
  } catch (const std::bad_alloc&) {
    if (!lock.owns_lock()) lock.lock();
    error_ = std::make_error_code(std::errc::not_enough_memory);
    writer_ = Writer::failed;
    if (stream_ != nullptr) stream_->shutdown();
    idle_.notify_all();
    return Flushed::failed;
  }
}

// Whether there is anything to write.
bool OutputQueue::fill() {
  if (!first_.empty()) return true;
  return state_ == State::open && (batches_.has_unwritten() || take_batch());
}

bool OutputQueue::take_batch() {
  if (queued_.frames.empty() && payloads_.none_ready()) return false;
  WriteBatch batch;
  batch.frames = std::exchange(queued_.frames, batches_.take_spare());
  batch.count = std::exchange(queued_.count, 0);
  batch.held = std::exchange(queued_.held, {});
  taken_ = appended_;
  take_chunk(batch);
  if (batch.frames.empty()) {  // the payloads were empty
    batches_.give_spare(std::exchange(queued_.frames, std::move(batch.frames)));
    queued_.held = batch.held;
    return false;
  }
  wire::set_acknowledged(std::span(batch.frames).subspan(queued_.last_frame),
                         received_.load(std::memory_order_relaxed));
  batches_.add(std::move(batch));
  return true;
}

void OutputQueue::take_chunk(WriteBatch& batch) {
  auto next = payloads_.next(chunk_size_.bytes(), released_);
  if (!next) return;
  const auto header = wire::plain_frame(next->header);
  const auto bytes = std::as_bytes(std::span(header));
  queued_.last_frame = batch.frames.size();
  batch.frames.insert(batch.frames.end(), bytes.begin(), bytes.end());
  ++batch.count;
  batch.chunk = std::move(next->chunk);
  (next->of_reply ? batch.held.replies : batch.held.calls) += next->finished;
}

std::span<const std::span<const std::byte>> OutputQueue::buffers_to_write(
    WriteBatches::Buffers& buffers) const {
  if (first_.empty()) return batches_.unwritten(buffers);
  buffers[0] = std::span(first_).subspan(first_written_);
  return std::span(buffers).first(1);
}

void OutputQueue::advance(std::size_t bytes) {
  written_bytes_ += bytes;
  if (first_.empty()) return batches_.advance(bytes, dropped());
  first_written_ += bytes;
  if (first_written_ < first_.size()) return;
  first_ = std::vector<std::byte>();
  first_written_ = 0;
}

// Removes and returns the watches of frames that are in batches.
OutputQueue::Watches OutputQueue::take_watches() {
  if (watches_.empty()) return {};
  const auto waits = [this](const Watched& watched) { return watched.begin >= taken_; };
  const auto first = std::find_if(watches_.begin(), watches_.end(), waits);
  Watches leaving(std::move_iterator(watches_.begin()), std::move_iterator(first));
  watches_.erase(watches_.begin(), first);
  return leaving;
}

}  // namespace batchrpc
