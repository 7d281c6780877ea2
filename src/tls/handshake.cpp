#include "tls/handshake.hpp"

#include <new>
#include <span>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "tls/tls_error.hpp"

namespace batchrpc::tls {
namespace {

// The heads of a client's first record and of the message in it.
constexpr std::size_t kHelloHead = SSL3_RT_HEADER_LENGTH + SSL3_HM_HEADER_LENGTH;

}  // namespace

Handshake::Handshake(std::shared_ptr<Loop> loop, std::shared_ptr<Credentials> credentials,
                     std::unique_ptr<Stream> below, bool is_server, Done done)
    : loop_(std::move(loop)),
      credentials_(std::move(credentials)),
      is_server_(is_server),
      description_(below->description()),
      below_(std::move(below)),
      done_(std::move(done)) {}

void Handshake::run(const std::weak_ptr<OffLoop>& threads) {
  Next next = Next::step;
  try {
    while (next == Next::step) {
      {
        const std::lock_guard lock(mutex_);
        if (!done_) return;
      }
      next = step();
    }
    wait(next, threads);
  } catch (const std::exception& error) {  // no memory, or the kernel watches no more sockets
    failed(std::make_error_code(std::errc::not_enough_memory), error.what());
  }
}

void Handshake::wait(Next next, const std::weak_ptr<OffLoop>& threads) {
  if (next == Next::over) return;
  auto go_on = [weak = weak_from_this(), threads] {
    const auto self = weak.lock();
    const auto off_loop = threads.lock();
    if (self && off_loop) off_loop->post([self, threads] { self->run(threads); });
  };
  if (next == Next::read) {
    below_->wait_readable(std::move(go_on));
  } else {
    below_->wait_writable(std::move(go_on));
  }
}

Handshake::Next Handshake::step() {
  if (!leaving_.empty()) return send();
  if (is_finished_) return finished();
  if (!records_) records_ = std::make_unique<Records>(credentials_->context(), is_server_);
  clear_openssl_errors();
  SSL& ssl = records_->ssl();
  const int result = SSL_do_handshake(&ssl);
  leaving_.swap(records_->output());
  if (result == 1) {
    is_finished_ = true;
    return Next::step;
  }
  if (SSL_get_error(&ssl, result) == SSL_ERROR_WANT_READ) {
    return leaving_.empty() ? receive() : Next::step;
  }
  const std::error_code error = credentials_->explain(ssl, take_error(ssl, result));
  const std::span<const std::byte> alert = leaving_;
  (void)below_->try_write(std::span(&alert, 1));  // if the stream takes it now
  return failed(error);
}

Handshake::Next Handshake::send() {
  const std::span<const std::byte> bytes = leaving_;
  const IoResult result = below_->try_write(std::span(&bytes, 1));
  if (result.error) return failed(result.error);
  leaving_.erase(leaving_.begin(), leaving_.begin() + static_cast<std::ptrdiff_t>(result.bytes));
  return leaving_.empty() ? Next::step : Next::write;
}

Handshake::Next Handshake::receive() {
  const bool is_hello = is_server_ && hello_bytes_ < kHelloHead;
  const std::span<std::byte> room = std::span(input_).subspan(is_hello ? hello_bytes_ : 0);
  const IoResult result = below_->try_read(std::span(&room, 1));
  if (result.error) return failed(result.error);
  if (result.end) return failed(TlsError::ended_handshake);
  if (result.bytes == 0) return Next::read;
  if (!is_hello) {
    records_->feed(room.first(result.bytes));
    return Next::step;
  }
  hello_bytes_ += result.bytes;
  if (const std::error_code error = check_hello()) return failed(error);
  if (hello_bytes_ < kHelloHead) return Next::step;
  records_->feed(std::span(input_).first(hello_bytes_));
  return Next::step;
}

// OpenSSL would allocate the memory for a hello of 128 KiB as soon as it is announced.
std::error_code Handshake::check_hello() const {
  constexpr std::byte kHandshakeRecord{22};
  constexpr std::byte kClientHello{1};
  constexpr unsigned kLargestHello = 16 * 1024;
  if (input_[0] != kHandshakeRecord) return TlsError::not_tls;
  if (hello_bytes_ < kHelloHead) return {};
  const auto byte = [this](std::size_t at) { return std::to_integer<unsigned>(input_[at]); };
  const unsigned record = byte(3) * 256U + byte(4);
  const unsigned hello = byte(6) * 65536U + byte(7) * 256U + byte(8);
  if (input_[5] != kClientHello || record < 4 || hello > kLargestHello) return TlsError::not_tls;
  return {};
}

Handshake::Next Handshake::finished() {
  Outcome outcome;
  try {
    outcome.peer = credentials_->prove(records_->ssl());
  } catch (const PermissionDenied& error) {
    return failed(TlsError::bad_certificate, error.what());
  }
  // The streams outlive this object, in which the rest of the input lies.
  outcome.below = std::move(below_);
  outcome.records = std::move(records_);
  report(std::move(outcome));
  return Next::over;
}

Handshake::Next Handshake::failed(std::error_code error, std::string reason) {
  if (reason.empty()) reason = error.message();
  if (below_) below_->shutdown();
  report({.error = error, .reason = std::move(reason)});
  return Next::over;
}

void Handshake::report(Outcome outcome) {
  std::unique_lock lock(mutex_);
  if (!done_) return;
  Done done = std::move(done_);
  done_ = nullptr;
  lock.unlock();
  // The task keeps this object until it has run, and so the input.
  loop_->post([self = shared_from_this(), done = std::move(done),
               outcome = std::move(outcome)]() mutable { done(std::move(outcome)); });
}

void Handshake::give_up(std::error_code error) {
  report({.error = error, .reason = error.message()});
}

void Handshake::drop() {
  Done dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  std::swap(dropped, done_);
}

}  // namespace batchrpc::tls
