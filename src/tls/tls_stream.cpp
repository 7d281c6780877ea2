#include "tls/tls_stream.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "tls/tls_error.hpp"
#include "transport/turn_end.hpp"

namespace batchrpc::tls {
namespace {

constexpr std::size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr std::size_t kLot = 4 * kRecord;     // is encrypted before it is sent
constexpr std::size_t kReadSize = 64 * 1024;  // bytes of the stream below that are read at once
constexpr std::size_t kMostBuffers = 64;
constexpr std::size_t kMostAnswers = 4 * 1024;
// One read decrypts this many times kReadSize at most, so that a fast peer does not hold up others.
constexpr int kRefills = 2;
// A record of data has at most 16 KiB. A peer that sends more without any data is dropped.
constexpr std::size_t kMostWithoutData = 128 * 1024;
// The records for which one key may be used (RFC 8446, 5.5: 2^24.5).
constexpr std::uint64_t kRecordsOfAKey = std::uint64_t{1} << 23;

std::size_t size_of(std::span<const std::span<const std::byte>> buffers) noexcept {
  std::size_t size = 0;
  for (const auto& buffer : buffers)
    size += buffer.size();
  return size;
}

}  // namespace

void StreamEnding::end(std::error_code reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (below_ == nullptr || reason_) return;
  reason_ = reason;
  below_->shutdown();
}

std::error_code StreamEnding::reason() const noexcept {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void StreamEnding::forget() noexcept {
  const std::lock_guard lock(mutex_);
  below_ = nullptr;
}

bool StreamEnding::is_alive() const noexcept {
  const std::lock_guard lock(mutex_);
  return below_ != nullptr;
}

// The handler that waits for bytes that are decrypted already.
struct TlsStream::Waiting {
  std::mutex mutex;
  Task handler;
};

TlsStream::TlsStream(std::shared_ptr<Loop> loop, std::unique_ptr<Stream> below,
                     std::unique_ptr<Records> records, std::shared_ptr<const PeerProof> proof)
    : loop_(std::move(loop)),
      outlet_(std::make_shared<Outlet>(loop_, std::move(below))),
      proof_(std::move(proof)),
      waiting_(std::make_shared<Waiting>()),
      ending_(std::make_shared<StreamEnding>(outlet_->below())),
      records_(std::move(records)) {
  const std::span<const std::byte> rest = records_->unread();  // behind the handshake
  unread_.assign(rest.begin(), rest.end());
  records_->feed(unread_);
}

TlsStream::~TlsStream() {
  say_end();
  outlet_->close();
  ending_->forget();
  const std::lock_guard lock(waiting_->mutex);
  waiting_->handler = nullptr;
}

// --- reading

IoResult TlsStream::try_read(std::span<const std::span<std::byte>> buffers) noexcept {
  if (read_error_) return {.bytes = 0, .error = read_error_};
  // Not initialized: the stream below writes it.
  std::array<std::byte, kReadSize> memory;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::size_t moved = 0;
  IoResult last;
  try {
    last = decrypt(buffers, memory, moved);
    keep_unread();
  } catch (const std::bad_alloc&) {
    last = {.bytes = 0, .error = std::make_error_code(std::errc::not_enough_memory)};
    const std::lock_guard lock(mutex_);
    records_->feed({});
  }
  if (last.error || last.end) {
    if (const auto reason = ending_->reason()) last = {.bytes = 0, .error = reason};
  }
  read_error_ = last.error;
  if (moved > 0) return {.bytes = moved, .error = {}};
  return last;
}

// Fills the buffers as far as it can, and counts the bytes in `moved`. Returns why it stopped.
IoResult TlsStream::decrypt(std::span<const std::span<std::byte>> buffers,
                            std::span<std::byte> memory, std::size_t& moved) {
  int refills = 0;
  for (std::span<std::byte> buffer : buffers) {
    while (!buffer.empty()) {
      IoResult last = read_some(buffer);
      if (last.would_block() && refills++ < kRefills && refill(memory, last)) continue;
      if (last.bytes == 0) return last;
      without_data_ = 0;
      moved += last.bytes;
      buffer = buffer.subspan(last.bytes);
    }
  }
  return {};
}

// The memory that was fed may be about to go.
void TlsStream::keep_unread() {
  const std::lock_guard lock(mutex_);
  const std::span<const std::byte> rest = records_->unread();
  if (rest.empty() && unread_.empty()) return;
  std::vector<std::byte> kept(rest.begin(), rest.end());
  unread_.swap(kept);
  records_->feed(unread_);
}

// Decrypts what was fed. Would block if that is not a whole record.
IoResult TlsStream::read_some(std::span<std::byte> buffer) {
  const std::lock_guard lock(mutex_);
  const bool has_ended = (SSL_get_shutdown(&records_->ssl()) & SSL_RECEIVED_SHUTDOWN) != 0;
  if (!has_ended && !records_->has_readable()) return {};  // OpenSSL needs longer to find out
  clear_openssl_errors();
  std::size_t count = 0;
  const int result = SSL_read_ex(&records_->ssl(), buffer.data(), buffer.size(), &count);
  // What the peer makes OpenSSL answer, such as updates of keys, leaves with what is written next.
  if (records_->output().size() > kMostAnswers) return {.bytes = 0, .error = TlsError::floods};
  if (result == 1) return {.bytes = count, .error = {}};
  switch (SSL_get_error(&records_->ssl(), result)) {
    case SSL_ERROR_WANT_READ:
      return {};
    case SSL_ERROR_ZERO_RETURN:
      return {.bytes = 0, .error = {}, .end = true};
    default:
      return {.bytes = 0, .error = take_error(records_->ssl(), result)};
  }
}

// Feeds it what the stream below has. Returns false, and the reason, if that is nothing.
bool TlsStream::refill(std::span<std::byte> memory, IoResult& failed) {
  if (std::exchange(drained_, false)) return false;  // the stream below had no more
  const IoResult got = outlet_->below().try_read(std::span(&memory, 1));
  if (got.end) {
    failed = {.bytes = 0, .error = TlsError::closed_early};
    return false;
  }
  if (got.bytes == 0) {
    failed = got;
    return false;
  }
  drained_ = got.bytes < memory.size();
  without_data_ += got.bytes;
  if (without_data_ > kMostWithoutData) {
    failed = {.bytes = 0, .error = TlsError::floods};
    return false;
  }
  const std::lock_guard lock(mutex_);
  records_->feed(memory.first(got.bytes));
  return true;
}

bool TlsStream::has_readable() const {
  if (read_error_) return true;
  const std::lock_guard lock(mutex_);
  return records_->has_readable();
}

void TlsStream::wait_readable(Task handler) {
  drained_ = false;
  if (!has_readable()) return outlet_->below().wait_readable(std::move(handler));
  {
    const std::lock_guard lock(waiting_->mutex);
    waiting_->handler = std::move(handler);
  }
  detail::end_turn();  // the sockets of others are next
  loop_->post([weak = std::weak_ptr(waiting_)] {
    const auto waiting = weak.lock();
    if (!waiting) return;
    std::unique_lock lock(waiting->mutex);
    Task ready = std::move(waiting->handler);
    waiting->handler = nullptr;
    lock.unlock();
    if (ready) ready();
  });
}

// --- writing

IoResult TlsStream::try_write(std::span<const std::span<const std::byte>> buffers) noexcept {
  using Sent = Outlet::Sent;
  buffers = buffers.first(std::min(buffers.size(), kMostBuffers));
  const std::size_t offered = size_of(buffers);
  const std::lock_guard lock(outlet_->mutex());
  Sent sent = outlet_->send();
  if (sent == Sent::failed) return {.bytes = 0, .error = outlet_->error()};
  if (sent == Sent::blocked || offered == 0) return {};
  std::size_t taken = 0;
  while (taken < offered && sent == Sent::all) {
    const std::size_t count = std::min(kLot, offered - taken);
    if (const std::error_code error = encrypt(buffers, taken, count)) outlet_->fail(error);
    sent = outlet_->send();
    if (sent == Sent::failed) return {.bytes = 0, .error = outlet_->error()};
    taken += count;
  }
  try {
    if (sent == Sent::blocked) outlet_->send_later();
  } catch (const std::bad_alloc&) {  // what is left would stay
    outlet_->fail(std::make_error_code(std::errc::not_enough_memory));
  }
  return {.bytes = taken, .error = {}};
}

// Encrypts `count` bytes of the buffers, from byte `from` on. Small buffers share a record.
std::error_code TlsStream::encrypt(std::span<const std::span<const std::byte>> buffers,
                                   std::size_t from, std::size_t count) noexcept {
  std::array<std::byte, kRecord> gathered;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::size_t at = 0;                       // of gathered
  auto buffer = buffers.begin();
  for (; from >= buffer->size(); ++buffer)
    from -= buffer->size();
  const std::lock_guard lock(mutex_);
  if (records_->output().empty()) outlet_->next().swap(records_->output());  // its memory
  while (count > 0) {
    std::span<const std::byte> piece = buffer->subspan(from);
    piece = piece.first(std::min({piece.size(), count, kRecord - at}));
    from += piece.size();
    count -= piece.size();
    while (buffer != buffers.end() && from >= buffer->size()) {
      from -= buffer->size();
      ++buffer;
    }
    if (at > 0 || piece.size() < kRecord) {
      std::memcpy(gathered.data() + at, piece.data(), piece.size());
      at += piece.size();
      if (at < kRecord && count > 0) continue;
      piece = std::span(gathered).first(std::exchange(at, 0));
    }
    clear_openssl_errors();
    std::size_t written = 0;
    const int result = SSL_write_ex(&records_->ssl(), piece.data(), piece.size(), &written);
    if (result != 1) return take_error(records_->ssl(), result);
    if (++records_written_ % kRecordsOfAKey == 0)
      (void)SSL_key_update(&records_->ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
  }
  outlet_->next().swap(records_->output());
  return {};
}

void TlsStream::wait_writable(Task handler) { outlet_->wait_writable(std::move(handler)); }

// --- the end

// Tells the peer that the end is meant, if the stream below takes that now.
void TlsStream::say_end() noexcept {
  const std::unique_lock writing(outlet_->mutex(), std::try_to_lock);
  if (!writing.owns_lock() || outlet_->error()) return;
  if (outlet_->left() == 0) {
    const std::lock_guard lock(mutex_);
    clear_openssl_errors();
    (void)SSL_shutdown(&records_->ssl());
    clear_openssl_errors();
    outlet_->next().swap(records_->output());
    (void)outlet_->send();
  }
  outlet_->fail(std::make_error_code(std::errc::broken_pipe));
}

void TlsStream::shutdown() noexcept {
  say_end();
  outlet_->below().shutdown();
}

std::size_t TlsStream::unconfirmed_bytes() const noexcept {
  return outlet_->left() + outlet_->below().unconfirmed_bytes();
}

}  // namespace batchrpc::tls
