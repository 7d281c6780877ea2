#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <span>
#include <vector>

#include "tls/openssl_pointers.hpp"

namespace batchrpc::tls {

/// One side of a TLS connection whose records lie in memory: OpenSSL touches no socket. The caller
/// feeds it what the peer has sent, and sends the output. Not thread-safe.
class Records {
 public:
  /// Begins a handshake. Throws std::bad_alloc.
  Records(const ContextPtr& context, bool is_server);
  ~Records();
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  [[nodiscard]] SSL& ssl() const noexcept { return *ssl_; }

  /// Gives it bytes that the peer has sent, which must stay until they are consumed or fed again.
  void feed(std::span<const std::byte> bytes) noexcept { input_ = bytes; }
  /// Returns the bytes that were fed and not consumed yet.
  [[nodiscard]] std::span<const std::byte> unread() const noexcept { return input_; }

  /// Whether there is something to decrypt, or decrypted, that was not read yet. OpenSSL reads
  /// nothing ahead here, so it can do nothing without that.
  [[nodiscard]] bool has_readable() const noexcept {
    return !input_.empty() || SSL_pending(ssl_.get()) > 0;
  }

  /// The bytes for the peer, which the caller takes out.
  [[nodiscard]] std::vector<std::byte>& output() noexcept { return output_; }

 private:
  friend struct RecordBio;

  std::span<const std::byte> input_;
  std::vector<std::byte> output_;
  SslPtr ssl_;
};

}  // namespace batchrpc::tls
