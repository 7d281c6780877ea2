#pragma once

#include <openssl/err.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "batchrpc/transport/inproc.hpp"
#include "batchrpc/transport/virtual_loop.hpp"
#include "tls/credentials.hpp"
#include "tls/handshake.hpp"
#include "tls/tls_stream.hpp"

namespace batchrpc::tls::test {

/// A node's side of a TLS connection, and a client of OpenSSL alone, which sends what a test wants.
/// In memory and virtual time.
class TlsPair {
 public:
  using Buffer = std::vector<std::byte>;

  TlsPair() {
    listener_ = at_server_->listen(Address::parse("inproc://server"), [this](auto accepted) {
      handshake_ = std::make_shared<Handshake>(
          loop_, credentials(), std::move(accepted), true,
          [this](Handshake::Outcome outcome) { outcome_ = std::move(outcome); });
    });
    at_client_->connect(Address::parse("inproc://server"), loop_->now() + std::chrono::seconds(5),
                        [this](auto stream, std::error_code) { wire_ = std::move(stream); });
    if (!loop_->run_until([this] { return wire_ && handshake_; }))
      throw std::logic_error("no connection");
    run();
  }

  /// Both sides continue the handshake as far as they can; the client reads.
  void run() {
    for (int i = 0; i < 8; ++i) {
      loop_->run_for(Duration::zero());
      read_wire();
      if (!outcome_) handshake_->run({});
      loop_->run_for(Duration::zero());
      if (!outcome_ || !outcome_->below) continue;
      server_ = std::make_unique<TlsStream>(loop_, std::move(outcome_->below),
                                            std::move(outcome_->records), outcome_->peer.proof);
    }
  }

  /// What the client has to send, and has not sent.
  [[nodiscard]] Buffer& leaving() noexcept { return leaving_; }
  /// Sends these bytes to the server, as far as they fit now. Returns how many.
  std::size_t send(std::span<const std::byte> bytes) {
    return wire_->try_write(std::span(&bytes, 1)).bytes;
  }
  /// Sends the first `size` bytes of leaving().
  void pass(std::size_t size) {
    const std::size_t sent = send(std::span(leaving_).first(size));
    leaving_.erase(leaving_.begin(), leaving_.begin() + static_cast<std::ptrdiff_t>(sent));
  }
  /// Encrypts data for leaving(). False before the handshake is over.
  bool say(std::span<const std::byte> data) {
    const bool said =
        is_connected_ && SSL_write(&client_.ssl(), data.data(), static_cast<int>(data.size())) > 0;
    ERR_clear_error();
    take_output();
    return said;
  }
  /// Announces another key.
  void update_key() {
    SSL_key_update(&client_.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
    SSL_do_handshake(&client_.ssl());
    ERR_clear_error();
    take_output();
  }
  void close() { wire_->shutdown(); }

  /// The server's stream; null until its handshake is over, or if it has failed.
  [[nodiscard]] TlsStream* server() const noexcept { return server_.get(); }

 private:
  static std::shared_ptr<Credentials> credentials() {
    static const auto all =
        token_credentials(std::string(32, 't'), "the token", {.name = "node", .job = "job"});
    return all;
  }

  void read_wire() {
    Buffer bytes(64 * 1024);
    const std::array<std::span<std::byte>, 1> room{std::span(bytes)};
    const IoResult result = wire_->try_read(room);
    unread_.insert(unread_.end(), bytes.begin(),
                   bytes.begin() + static_cast<std::ptrdiff_t>(result.bytes));
    client_.feed(unread_);
    ERR_clear_error();
    is_connected_ = SSL_do_handshake(&client_.ssl()) == 1;
    std::array<char, 4096> text;
    while (is_connected_ && SSL_read(&client_.ssl(), text.data(), text.size()) > 0) {
    }
    ERR_clear_error();
    unread_.erase(unread_.begin(),
                  unread_.end() - static_cast<std::ptrdiff_t>(client_.unread().size()));
    take_output();
  }
  void take_output() {
    Buffer& output = client_.output();
    leaving_.insert(leaving_.end(), output.begin(), output.end());
    output.clear();
  }

  const std::shared_ptr<VirtualLoop> loop_ = std::make_shared<VirtualLoop>(1);
  const std::shared_ptr<InprocNetwork> network_ = InprocNetwork::make(1);
  const std::shared_ptr<Transport> at_server_ = network_->transport(loop_, "server");
  const std::shared_ptr<Transport> at_client_ = network_->transport(loop_, "client");
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Stream> wire_;  // the client's end
  std::shared_ptr<Handshake> handshake_;
  std::optional<Handshake::Outcome> outcome_;
  std::unique_ptr<TlsStream> server_;
  Records client_{credentials()->context(), false};
  Buffer unread_;  // what the client has not consumed
  Buffer leaving_;
  bool is_connected_ = false;
};

}  // namespace batchrpc::tls::test
