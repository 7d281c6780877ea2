#include "session/connection.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "batchrpc/base/error.hpp"
#include "session/first_bytes.hpp"
#include "session/flush_scope.hpp"
#include "session/scratch.hpp"

namespace batchrpc {
namespace {

// A frame that might not fit into the read buffer gets a buffer of its own.
constexpr std::size_t kLargeFrameBytes = ReadBuffer::kBytes / 2;
static_assert(kLargeFrameBytes + wire::kInlinePayloadBytes <= ReadBuffer::kBytes);

// The number of full buffers that one connection may read before others get their turn.
constexpr int kReadsInARow = 8;
// The most bytes to read behind a payload that is read directly into its place. They hold the
// header of the next chunk, say, but not its bytes, which would have to be copied.
constexpr std::size_t kReadBehind = 4096;

}  // namespace

// One round of reading. If a handler that it called waits, the unread rest goes back to the
// connection, and the thread that drives the loop meanwhile continues to read.
class Connection::Batch {
 public:
  explicit Batch(Connection& connection, const std::shared_ptr<FrameSink>& frame_sink)
      : sink(*frame_sink), connection_(connection), stream_(connection.streams_) {
    previous_ = Loop::exchange_nested_wait_hook({&Batch::on_nested_wait, this});
  }
  ~Batch() { Loop::exchange_nested_wait_hook(previous_); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  FrameSink& sink;
  std::span<const std::byte> rest;   // read, but not consumed
  std::span<const std::byte> frame;  // the frame that is being consumed, and all bytes behind it
  std::vector<Word> large_frame;     // the same, if the frame bypassed the buffer

  /// Whether the stream has ended, or another round of reading has taken over. Do not touch the
  /// connection then.
  [[nodiscard]] bool is_over() const {
    return detached_ || !connection_.live_ || connection_.streams_ != stream_;
  }

 private:
  static void on_nested_wait(void* self) noexcept {
    auto& batch = *static_cast<Batch*>(self);
    if (batch.is_over()) return;
    batch.detached_ = true;
    batch.connection_.partial_.assign(batch.rest.begin(), batch.rest.end());
    batch.connection_.wait_readable();
  }

  Connection& connection_;
  const unsigned stream_;
  bool detached_ = false;
  Loop::NestedWaitHook previous_;
};

Connection::Connection(std::shared_ptr<Loop> loop, std::shared_ptr<WaitContext> context,
                       ConnectionLimits limits)
    : loop_(std::move(loop)), context_(std::move(context)), limits_(limits) {}

Connection::~Connection() { output_.close(); }

void Connection::start(std::unique_ptr<Stream> stream, std::weak_ptr<FrameSink> sink) {
  if (closed_) return;
  if (live_) end_stream();
  stream_ = std::move(stream);
  sink_ = std::move(sink);
  ++streams_;
  live_ = true;
  open_ = false;
  waits_to_write_ = false;
  bytes_before_hello_ = 0;
  output_.attach(stream_.get());
  wait_readable();
}

std::unique_ptr<Stream> Connection::release() {
  closed_ = true;
  live_ = false;
  output_.close();
  return std::move(stream_);
}

void Connection::open() {
  open_ = true;
  output_.open();
  flush();
}

std::string Connection::description() const {
  return stream_ ? stream_->description() : "a connection that is not there yet";
}

// The reference is weak. The stream owns the waiting callback, the connection owns the stream, and
// a loop that has ended calls nothing.
void Connection::wait_readable() {
  stream_->wait_readable([weak = weak_from_this(), stream = streams_] {
    const auto self = weak.lock();
    if (self && self->streams_ == stream) self->read_ready();
  });
}

void Connection::read_ready() {
  const auto sink = sink_.lock();
  if (!sink || !live_) return;
  const FlushScope scope(context_);
  const Lease<ReadBuffer> buffer;
  Batch batch(*this, sink);
  try {
    for (int reads = 0; reads < kReadsInARow; ++reads) {
      const bool more = direct_ == Direct::dropped ? drop_rest(batch, buffer->bytes)
                                                   : read_once(batch, buffer->bytes);
      if (batch.is_over()) return;
      if (!more) break;
    }
  } catch (const std::exception& bad) {  // BadMessage, or no memory for the size that it declares
    if (batch.is_over()) return;
    if (!batch.frame.empty()) offence_ = "; " + first_bytes_text(batch.frame);
    fail(bad.what(), true);
    return;
  }
  FlushScope::flush_current();
  if (!batch.is_over()) wait_readable();
}

// Only the thread that reads writes these.
void Connection::note_heard(std::size_t bytes) noexcept {
  if (bytes == 0) return;
  heard_.store(true, std::memory_order_relaxed);
  bytes_received_.store(bytes_received() + bytes, std::memory_order_relaxed);
}

// Reads the available bytes and consumes them. Returns whether there may be more.
bool Connection::read_once(Batch& batch, std::span<std::byte> scratch) {
  const std::size_t have = partial_.size();
  std::copy(partial_.begin(), partial_.end(), scratch.begin());
  partial_.clear();

  std::array<std::byte, 8> padding;
  const std::size_t direct = direct_rest_.size();
  const std::size_t skip = direct_skip_;
  std::span<std::byte> behind = scratch.subspan(have);
  if (direct > 0) behind = behind.first(std::min(behind.size(), kReadBehind));
  const std::array<std::span<std::byte>, 3> all{direct_rest_, std::span(padding).first(skip),
                                                behind};
  std::array<std::span<std::byte>, 3> buffers;
  std::size_t count = 0;
  std::size_t offered = 0;
  for (const auto& buffer : all) {
    if (buffer.empty()) continue;
    buffers[count++] = buffer;
    offered += buffer.size();
  }
  const IoResult result = stream_->try_read(std::span(buffers).first(count));
  batch.rest = scratch.first(have);
  if (result.error) {
    fail(result.error.message(), false);
    return false;
  }
  if (result.end) {
    fail("the other side has closed the connection", false);
    return false;
  }
  std::size_t bytes = result.bytes;
  note_heard(bytes);
  read_at_ = loop_->ticks();
  const std::size_t direct_read = std::min(bytes, direct);
  bytes -= direct_read;
  direct_rest_ = direct_rest_.subspan(direct_read);
  const std::size_t skipped = std::min(bytes, skip);
  bytes -= skipped;
  direct_skip_ -= skipped;
  batch.rest = scratch.first(have + bytes);
  if (direct_ != Direct::none && direct_rest_.empty() && direct_skip_ == 0) finish_direct(batch);
  while (!batch.is_over() && consume(batch)) {
  }
  if (batch.is_over()) return false;
  partial_.assign(batch.rest.begin(), batch.rest.end());
  return result.bytes == offered;
}

// Reads bytes that nobody wants. Reads no others, so that the next frame begins at the start of the
// buffer.
bool Connection::drop_rest(Batch& /*batch*/, std::span<std::byte> scratch) {
  const std::size_t want = std::min<std::uint64_t>(scratch.size(), direct_skip_);
  const std::array<std::span<std::byte>, 1> buffers{scratch.first(want)};
  const IoResult result = stream_->try_read(buffers);
  if (result.error || result.end) {
    fail(result.error ? result.error.message() : "the other side has closed the connection", false);
    return false;
  }
  note_heard(result.bytes);
  direct_skip_ -= result.bytes;
  if (direct_skip_ == 0) direct_ = Direct::none;
  return result.bytes == want;
}

// Takes one frame from the batch. Returns whether there was one.
bool Connection::consume(Batch& batch) {
  if (batch.rest.size() < sizeof(Word) || direct_ != Direct::none) return false;
  batch.frame = batch.rest;
  Word first = 0;
  std::memcpy(&first, batch.rest.data(), sizeof first);
  const auto words = wire::frame_words(first);
  const std::uint64_t limit = open_ ? limits_.frame_bytes : limits_.before_hello_bytes;
  if (!words || *words < wire::kEnvelopeWords || *words > limit / sizeof(Word)) {
    throw BadMessage(!words || *words < wire::kEnvelopeWords
                         ? "the bytes received are not a batchrpc frame"
                         : "a frame of " + std::to_string(*words * sizeof(Word)) +
                               " bytes is larger than the limit of " + std::to_string(limit) +
                               " (NodeOptions::max_frame_bytes)");
  }
  const std::size_t size = *words * sizeof(Word);
  if (size > kLargeFrameBytes) {
    large_frame_.resize(*words);
    const auto target = std::as_writable_bytes(std::span(large_frame_));
    const std::size_t there = std::min(size, batch.rest.size());
    std::copy_n(batch.rest.begin(), there, target.begin());
    batch.rest = batch.rest.subspan(there);
    direct_ = Direct::frame;
    direct_rest_ = target.subspan(there);
    if (direct_rest_.empty()) finish_direct(batch);
    return direct_ == Direct::none;
  }
  if (batch.rest.size() < size) return false;
  const std::span frame_words(reinterpret_cast<const Word*>(batch.rest.data()), *words);
  const wire::FrameView frame = wire::parse_frame(frame_words);
  std::uint64_t behind = 0;
  if ((frame.header.flags & wire::kInlinePayloads) != 0) {
    for (const std::uint64_t payload : frame.payload_sizes) {
      if (payload > wire::kInlinePayloadBytes)
        throw BadMessage("a payload is too large to be inline");
      behind += wire::padded(payload);
    }
    if (behind > wire::kInlinePayloadBytes) throw BadMessage("inline payloads are too large");
    if (batch.rest.size() < size + behind) return false;
  }
  const auto payloads = batch.rest.subspan(size, behind);
  batch.rest = batch.rest.subspan(size + behind);
  if (frame.header.kind == wire::FrameKind::chunk) {
    begin_chunk(frame.header, batch);
  } else {
    deliver(frame, payloads, batch);
  }
  return true;
}

void Connection::begin_chunk(const wire::FrameHeader& header, Batch& batch) {
  const std::span<std::byte> target = batch.sink.chunk_target(header);
  if (target.empty()) {
    const std::uint64_t total = wire::padded(header.value);
    const std::size_t there = std::min<std::uint64_t>(total, batch.rest.size());
    batch.rest = batch.rest.subspan(there);
    direct_skip_ = total - there;
    direct_ = direct_skip_ > 0 ? Direct::dropped : Direct::none;
    return;
  }
  chunk_ = header;
  direct_ = Direct::chunk;
  const std::size_t there = std::min(target.size(), batch.rest.size());
  std::copy_n(batch.rest.begin(), there, target.begin());
  batch.rest = batch.rest.subspan(there);
  direct_rest_ = target.subspan(there);
  direct_skip_ = wire::padded(header.value) - header.value;
  const std::size_t skipped = std::min<std::uint64_t>(direct_skip_, batch.rest.size());
  batch.rest = batch.rest.subspan(skipped);
  direct_skip_ -= skipped;
  if (direct_rest_.empty() && direct_skip_ == 0) finish_direct(batch);
}

void Connection::finish_direct(Batch& batch) {
  if (std::exchange(direct_, Direct::none) == Direct::chunk) {
    batch.sink.on_chunk(chunk_);
    return;
  }
  batch.large_frame = std::exchange(large_frame_, {});
  batch.frame = std::as_bytes(std::span(batch.large_frame));
  const wire::FrameView frame = wire::parse_frame(batch.large_frame);
  if ((frame.header.flags & wire::kInlinePayloads) != 0 ||
      frame.header.kind == wire::FrameKind::chunk) {
    throw BadMessage("a large frame is followed by nothing");
  }
  deliver(frame, {}, batch);
  batch.frame = {};
  batch.large_frame = {};
}

void Connection::deliver(const wire::FrameView& frame, std::span<const std::byte> payloads,
                         Batch& batch) {
  if (!open_) {
    bytes_before_hello_ += frame.words.size_bytes() + payloads.size();
    if (bytes_before_hello_ > limits_.before_hello_bytes) {
      throw BadMessage("more than " + std::to_string(limits_.before_hello_bytes) +
                       " bytes came before a hello");
    }
  }
  std::vector<Bytes> views;
  if ((frame.header.flags & wire::kInlinePayloads) != 0) {
    views.reserve(frame.payload_sizes.size());
    for (const std::uint64_t size : frame.payload_sizes) {
      views.emplace_back(nullptr, payloads.first(size));
      payloads = payloads.subspan(wire::padded(size));
    }
  }
  batch.sink.on_frame(frame, views);
}

void Connection::flush() { handle_flushed(output_.flush()); }

void Connection::flush_soon() {
  if (flush_posted_.exchange(true, std::memory_order_acq_rel)) return;
  loop_->post([self = shared_from_this()] {
    self->flush_posted_.store(false, std::memory_order_release);
    self->flush();
  });
}

void Connection::handle_flushed(OutputQueue::Flushed flushed) {
  // After a failed write there may still be replies, and a goodbye, to read. The reading side finds
  // the end itself.
  if (flushed != OutputQueue::Flushed::blocked) return;
  loop_->post([self = shared_from_this()] { self->wait_writable(); });
  output_.give_back();
}

void Connection::wait_writable() {
  // Meanwhile another stream may have come, on which nothing blocks.
  if (!live_ || waits_to_write_ || !output_.is_blocked()) return;
  waits_to_write_ = true;
  stream_->wait_writable([weak = weak_from_this(), stream = streams_] {
    const auto self = weak.lock();
    if (!self || !self->live_ || self->streams_ != stream) return;
    self->waits_to_write_ = false;
    self->handle_flushed(self->output_.flush_blocked());
  });
}

void Connection::close() {
  if (closed_) return;
  closed_ = true;
  if (live_) (void)output_.flush();
  live_ = false;
  output_.close();
  if (stream_) stream_->shutdown();
}

void Connection::end_stream() {
  live_ = false;
  output_.detach();
  partial_ = std::vector<std::byte>();
  direct_ = Direct::none;
  direct_rest_ = {};
  direct_skip_ = 0;
  large_frame_ = std::vector<Word>();
  stream_->shutdown();
}

bool Connection::break_off(const std::string& why) {
  if (!live_) return false;
  fail(why, false);
  return true;
}

void Connection::fail(const std::string& why, bool protocol_error) {
  if (!live_) return;
  end_stream();
  if (const auto sink = sink_.lock()) sink->on_closed(why, protocol_error);
}

}  // namespace batchrpc
