#include "session/connection.hpp"

#include <new>
#include <span>

#include "session/first_bytes.hpp"
#include "session/flush_scope.hpp"
#include "transport/turn_end.hpp"

namespace batchrpc {
namespace {

// The number of full buffers that one connection may read before others get their turn.
constexpr int kReadsInARow = 8;

}  // namespace

// A round of reading. If a handler that it called waits, the unread rest goes back to the
// connection, and the thread that drives the loop meanwhile handles it and continues to read.
class Connection::Batch {
 public:
  Batch(Connection& connection, FrameSink& sink, std::span<std::byte> scratch)
      : round(connection.reader_, sink, scratch), connection_(connection) {
    previous_ = Loop::exchange_nested_wait_hook({&Batch::on_nested_wait, this});
  }
  ~Batch() { Loop::exchange_nested_wait_hook(previous_); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  FrameReader::Round round;

 private:
  static void on_nested_wait(void* self) noexcept {
    auto& batch = *static_cast<Batch*>(self);
    try {
      if (batch.round.give_back()) batch.connection_.take_turn_later();
    } catch (const std::bad_alloc&) {  // what was read is lost
      batch.connection_.fail("no memory", true);
    }
  }

  Connection& connection_;
  Loop::NestedWaitHook previous_;
};

Connection::Connection(std::shared_ptr<Loop> loop, std::shared_ptr<WaitContext> context,
                       ConnectionLimits limits)
    : loop_(std::move(loop)), context_(std::move(context)), reader_(limits) {}

Connection::~Connection() { output_.close(); }

void Connection::start(std::unique_ptr<Stream> stream, std::weak_ptr<FrameSink> sink) {
  if (closed_) return;
  if (live_) end_stream();
  stream_ = std::move(stream);
  sink_ = std::move(sink);
  ++streams_;
  live_ = true;
  waits_to_write_ = false;
  output_.attach(stream_.get());
  wait_readable();
}

std::unique_ptr<Stream> Connection::release() {
  closed_ = true;
  live_ = false;
  reader_.reset();
  unread_.reset();
  output_.close();
  return std::move(stream_);
}

void Connection::open() {
  reader_.open();
  output_.open();
  flush();
}

std::string Connection::description() const {
  return stream_ ? stream_->description() : "a connection that is not established yet";
}

// The reference is weak. The stream owns the waiting callback, the connection owns the stream, and
// a loop that has ended calls nothing.
void Connection::wait_readable() {
  stream_->wait_readable([weak = weak_from_this(), stream = streams_] {
    const auto self = weak.lock();
    if (self && self->streams_ == stream) self->read_ready();
  });
}

void Connection::read_ready() { take_turn(false); }

// Other connections have their turns first.
void Connection::take_turn_later() {
  detail::end_turn();
  loop_->defer([weak = weak_from_this(), stream = streams_] {
    const auto self = weak.lock();
    if (self && self->streams_ == stream) self->take_turn(true);
  });
}

// Handles what is there, until the turn is over. `goes_on`: begins with what a turn has left.
void Connection::take_turn(bool goes_on) {
  const auto sink = sink_.lock();
  if (!sink || !live_) return;
  const FlushScope scope(context_);
  try {
    Lease<ReadBuffer> buffer(unread_ ? std::move(unread_->buffer) : Lease<ReadBuffer>());
    Batch batch(*this, *sink, buffer->bytes);
    FrameReader::Round& round = batch.round;
    bool more = true;  // there may be more to read
    try {
      if (goes_on) more = go_on(round);
      for (int reads = 0; more && reads < kReadsInARow; ++reads) {
        if (round.is_over() || round.turn.is_over()) break;
        more = read_once(round);
        if (more) round.turn.look();
      }
    } catch (const std::exception& bad) {  // BadMessage, or no memory
      if (round.is_over()) return;
      if (!round.frame().empty()) offence_ = "; " + first_bytes_text(round.frame());
      fail(bad.what(), true);
      return;
    }
    if (round.is_over()) return;
    messages_take_long_ = round.turn.had_long_messages();
    if (!round.unread().empty()) return keep_unread(std::move(buffer), round.unread(), more);
    FlushScope::flush_current();
    if (!round.is_over()) wait_readable();
  } catch (const std::bad_alloc&) {
    fail("no memory", true);
  }
}

// Handles what another turn has left. Returns whether there may be more to read.
bool Connection::go_on(FrameReader::Round& round) {
  const auto left = std::move(unread_);
  if (left) read_at_ = left->read_at;
  round.turn = ReadTurn(*loop_, loop_->ticks(), messages_take_long_);
  reader_.go_on(round, left ? left->bytes : std::span<const std::byte>());
  return !left || left->more;
}

void Connection::keep_unread(Lease<ReadBuffer>&& buffer, std::span<const std::byte> bytes,
                             bool more) {
  unread_ = std::make_unique<Unread>(
      Unread{.buffer = std::move(buffer), .bytes = bytes, .read_at = read_at_, .more = more});
  const unsigned stream = streams_;
  FlushScope::flush_current();
  if (unread_ && streams_ == stream) take_turn_later();
}

// Only the thread that reads writes these.
void Connection::note_heard(std::size_t bytes) noexcept {
  if (bytes == 0) return;
  heard_.store(true, std::memory_order_relaxed);
  bytes_received_.store(bytes_received() + bytes, std::memory_order_relaxed);
}

// Reads the available bytes and consumes them. Returns whether there may be more.
bool Connection::read_once(FrameReader::Round& round) {
  const IoResult result = stream_->try_read(reader_.buffers(round));
  if (result.error || result.end) {
    fail(result.error ? result.error.message() : "the peer closed the connection", false);
    return false;
  }
  note_heard(result.bytes);
  read_at_ = loop_->ticks();
  if (!round.turn.is_limited()) round.turn = ReadTurn(*loop_, read_at_, messages_take_long_);
  return reader_.take(round, result.bytes);
}

void Connection::flush() { handle_flushed(output_.flush()); }

void Connection::flush_soon() {
  if (flush_posted_.exchange(true, std::memory_order_acq_rel)) return;
  try {
    loop_->post([self = shared_from_this()] {
      self->flush_posted_.store(false, std::memory_order_release);
      self->flush();
    });
  } catch (const std::bad_alloc&) {  // it is not posted
    flush_posted_.store(false, std::memory_order_release);
    throw;
  }
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
  reader_.reset();
  unread_.reset();
  output_.close();
  if (stream_) stream_->shutdown();
}

void Connection::end_stream() {
  live_ = false;
  output_.detach();
  reader_.reset();
  unread_.reset();
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
  const auto sink = sink_.lock();
  if (!sink) return;
  try {
    sink->on_closed(why, protocol_error);
  } catch (const std::bad_alloc&) {  // NOLINT: the stream has ended all the same
  }
}

}  // namespace batchrpc
