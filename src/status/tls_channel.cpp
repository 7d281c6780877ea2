#include "batchrpc/base/error.hpp"
#include "status/channel.hpp"

#ifdef BATCHRPC_STATUS_TLS

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace batchrpc::status {
namespace {

// What OpenSSL reads from a socket before other connections have their turn: messages of the
// handshake, and those that carry no bytes of a request, are read without returning.
constexpr std::size_t kBytesATurn = std::size_t{64} * 1024;

struct Freed {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  void operator()(BIO_METHOD* method) const noexcept { BIO_meth_free(method); }
};
using Context = std::unique_ptr<SSL_CTX, Freed>;

// A socket as OpenSSL's BIO: OpenSSL's own raises SIGPIPE.
struct SocketEnd {
  int socket = -1;
  std::size_t readable = 0;  // bytes left of the turn
};

bool comes_later() noexcept { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int bio_read(BIO* bio, char* to, int size) {
  auto* const end = static_cast<SocketEnd*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (size <= 0) return 0;
  if (end->readable == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const ssize_t bytes = ::recv(
      end->socket, to, std::min(static_cast<std::size_t>(size), end->readable), MSG_DONTWAIT);
  if (bytes < 0 && comes_later()) BIO_set_retry_read(bio);
  if (bytes > 0) end->readable -= static_cast<std::size_t>(bytes);
  return static_cast<int>(bytes);
}

int bio_write(BIO* bio, const char* from, int size) {
  auto* const end = static_cast<SocketEnd*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (size <= 0) return 0;
  const ssize_t bytes =
      ::send(end->socket, from, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (bytes < 0 && comes_later()) BIO_set_retry_write(bio);
  return static_cast<int>(bytes);
}

long bio_control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* bio_method() {
  static BIO_METHOD* const method = [] {  // stays: threads may use it until the program ends
    BIO_METHOD* const made =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket of a status page");
    if (made != nullptr) {
      BIO_meth_set_read(made, bio_read);
      BIO_meth_set_write(made, bio_write);
      BIO_meth_set_ctrl(made, bio_control);
    }
    return made;
  }();
  return method;
}

class TlsChannel final : public Channel {
 public:
  TlsChannel(OwnedFd socket, SSL_CTX* context)
      : Channel(std::move(socket)), end_{.socket = Channel::socket()}, ssl_(SSL_new(context)) {
    BIO* const bio = ssl_ ? BIO_new(bio_method()) : nullptr;
    if (bio == nullptr) {
      ssl_.reset();
      return;
    }
    BIO_set_data(bio, &end_);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_accept_state(ssl_.get());
  }

  [[nodiscard]] bool is_valid() const noexcept { return ssl_ != nullptr; }

  std::optional<std::size_t> read(char* to, std::size_t size) override {
    begin();
    std::size_t bytes = 0;
    const int result = SSL_read_ex(ssl_.get(), to, size, &bytes);
    return result == 1 ? std::optional(bytes) : what_now(result);
  }
  std::optional<std::size_t> write(const char* from, std::size_t size) override {
    begin();
    std::size_t bytes = 0;
    const int result = SSL_write_ex(ssl_.get(), from, size, &bytes);
    return result == 1 ? std::optional(bytes) : what_now(result);
  }
  bool end_sending() override {
    begin();
    const int result = SSL_shutdown(ssl_.get());
    if (result < 0 && !what_now(result)) return false;
    ::shutdown(socket(), SHUT_WR);
    return true;
  }
  [[nodiscard]] short awaited(short wanted) const noexcept override {
    return awaited_ != 0 ? awaited_ : wanted;
  }

 private:
  void begin() noexcept {
    ERR_clear_error();  // SSL_get_error() looks at this thread's errors
    end_.readable = kBytesATurn;
    awaited_ = 0;
  }
  std::optional<std::size_t> what_now(int result) noexcept {
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        awaited_ = POLLIN;
        return std::nullopt;
      case SSL_ERROR_WANT_WRITE:
        awaited_ = POLLOUT;
        return std::nullopt;
      default:
        return 0;
    }
  }

  SocketEnd end_;
  std::unique_ptr<SSL, Freed> ssl_;
  short awaited_ = 0;
};

// Throws with OpenSSL's reason.
[[noreturn]] void refuse_tls(const std::string& what, const std::string& remedy) {
  const unsigned long code = ERR_peek_last_error();  // NOLINT(google-runtime-int): OpenSSL's type
  const char* const reason = ERR_reason_error_string(code);
  ERR_clear_error();
  throw InvalidArgument("the status page cannot use " + what + ": " +
                        (reason != nullptr ? reason : "it cannot be read") + "; " + remedy);
}

// A passphrase is asked for at the terminal unless there is this.
int no_passphrase(char* /*to*/, int /*size*/, int /*writing*/, void* /*data*/) { return -1; }

}  // namespace

bool has_tls() noexcept { return true; }

Channels tls_channels(const std::string& certificate, const std::string& key) {
  ERR_clear_error();
  std::shared_ptr<SSL_CTX> context(Context(SSL_CTX_new(TLS_server_method())));
  if (!context || bio_method() == nullptr) refuse_tls("TLS", "check the installation of OpenSSL");
  SSL_CTX* const made = context.get();
  SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION);
  SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                             SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(made, 0);  // a connection serves one request
  SSL_CTX_set_default_passwd_cb(made, no_passphrase);
  if (SSL_CTX_use_certificate_chain_file(made, certificate.c_str()) != 1) {
    refuse_tls(
        "the certificate '" + certificate + "'",
        "StatusOptions::certificate is the path of a PEM file with the certificate, then those "
        "that signed it");
  }
  if (SSL_CTX_use_PrivateKey_file(made, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(made) != 1) {
    refuse_tls("the key '" + key + "' with the certificate '" + certificate + "'",
               "StatusOptions::key is the path of a PEM file with that certificate's private key, "
               "without a passphrase");
  }
  return [context](OwnedFd socket) -> std::unique_ptr<Channel> {
    auto channel = std::make_unique<TlsChannel>(std::move(socket), context.get());
    if (!channel->is_valid()) return nullptr;
    return channel;
  };
}

}  // namespace batchrpc::status

#else

namespace batchrpc::status {

bool has_tls() noexcept { return false; }

Channels tls_channels(const std::string& /*certificate*/, const std::string& /*key*/) {
  throw InvalidArgument(
      "this build of batchrpc serves no status page by TLS: build it where OpenSSL 3 is found "
      "(Debian: libssl-dev), or serve the page on loopback without StatusOptions::certificate, and "
      "reach it by an SSH tunnel");
}

}  // namespace batchrpc::status

#endif
