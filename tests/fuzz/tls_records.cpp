#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/transport/inproc.hpp"
#include "batchrpc/transport/virtual_loop.hpp"
#include "fuzz/targets.hpp"
#include "fuzz/tls_steps.hpp"
#include "tls/credentials.hpp"
#include "tls/handshake.hpp"
#include "tls/tls_stream.hpp"

// A TLS server, as nodes have it, and a client of OpenSSL alone, in memory. The input moves the
// client's bytes to the server: whole, in pieces, changed, or with others between them.

namespace batchrpc::fuzz {
namespace {

using Buffer = std::vector<std::byte>;

std::shared_ptr<tls::Credentials> credentials() {
  static const auto all =
      tls::token_credentials(std::string(32, 't'), "the token", {.name = "node", .job = "job"});
  return all;
}

class TlsScene {
 public:
  TlsScene() {
    listener_ = at_server_->listen(Address::parse("inproc://server"), [this](auto accepted) {
      handshake_ = std::make_shared<tls::Handshake>(
          loop_, credentials(), std::move(accepted), true,
          [this](tls::Handshake::Outcome outcome) { outcome_ = std::move(outcome); });
    });
    at_client_->connect(Address::parse("inproc://server"), loop_->now() + std::chrono::seconds(5),
                        [this](auto stream, std::error_code) { wire_ = std::move(stream); });
    require(loop_->run_until([this] { return wire_ && handshake_; }), "no connection");
    run();
  }

  void run(Input input) {
    while (input.size() >= 2) {
      const auto kind = std::to_integer<unsigned>(input[0]) % 16;
      const auto count = std::to_integer<std::size_t>(input[1]);
      input = input.subspan(2);
      switch (kind) {
        case kChange:
        case kPass:
          pass(count, kind == kChange);
          break;
        case kDrop:
          leaving_.erase(leaving_.begin(), leaving_.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                  count, leaving_.size())));
          break;
        case kInsert:
          send(input.first(std::min(count, input.size())));
          input = input.subspan(std::min(count, input.size()));
          break;
        case kSay:
          say(count);
          break;
        case kAnswer:
          answer(count);
          break;
        case kClose:
          wire_->shutdown();
          break;
        case kUpdateKey:
          SSL_key_update(&client_.ssl(), SSL_KEY_UPDATE_REQUESTED);
          break;
        default:
          pass(0, false);
      }
      run();
    }
    require(ERR_peek_error() == 0, "an error is left in OpenSSL's queue");
  }

 private:
  // Both sides go on as far as they can.
  void run() {
    for (int i = 0; i < 8; ++i) {
      loop_->run_for(Duration::zero());
      read_wire();
      if (handshake_ && !outcome_) handshake_->run({});
      loop_->run_for(Duration::zero());
      if (outcome_ && outcome_->below) {
        require(outcome_->peer.proof != nullptr, "a peer that has proved nothing");
        server_ = std::make_unique<tls::TlsStream>(
            loop_, std::move(outcome_->below), std::move(outcome_->records), outcome_->peer.proof);
      }
      if (server_) read_server();
    }
  }

  // The client's side: what has come, and what that makes it send.
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

  void read_server() {
    Buffer bytes(5000);
    const std::array<std::span<std::byte>, 2> room{std::span(bytes).first(3),
                                                   std::span(bytes).subspan(3)};
    const IoResult result = server_->try_read(room);
    require(result.bytes <= said_.size(), "bytes that nobody sent");
    require(std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(result.bytes),
                       said_.begin()),
            "other bytes than the client sent");
    said_.erase(said_.begin(), said_.begin() + static_cast<std::ptrdiff_t>(result.bytes));
    if (!result.error && !result.end && result.bytes == 0) server_->wait_readable([] {});
  }

  void send(Input bytes) {
    const std::array<Input, 1> buffers{bytes};
    (void)wire_->try_write(buffers);
  }

  void pass(std::size_t count, bool changed) {
    const std::size_t size = count == 0 ? leaving_.size() : std::min(count, leaving_.size());
    if (changed && size > 0) leaving_[size - 1] ^= std::byte{1};
    send(std::span(leaving_).first(size));
    leaving_.erase(leaving_.begin(), leaving_.begin() + static_cast<std::ptrdiff_t>(size));
  }

  void say(std::size_t count) {
    if (!is_connected_ || count == 0) return;
    Buffer data(count * 64);
    for (std::byte& byte : data)
      byte = std::byte(++counter_);
    if (SSL_write(&client_.ssl(), data.data(), static_cast<int>(data.size())) > 0)
      said_.insert(said_.end(), data.begin(), data.end());
    ERR_clear_error();
    take_output();
  }

  void answer(std::size_t count) {
    if (!server_) return;
    const Buffer data(count * 64);
    const std::array<Input, 2> buffers{Input(data), Input(data).first(data.size() / 2)};
    if (server_->try_write(buffers).would_block()) server_->wait_writable([] {});
  }

  const std::shared_ptr<VirtualLoop> loop_ = std::make_shared<VirtualLoop>(1);
  const std::shared_ptr<InprocNetwork> network_ = InprocNetwork::make(1);
  const std::shared_ptr<Transport> at_server_ = network_->transport(loop_, "server");
  const std::shared_ptr<Transport> at_client_ = network_->transport(loop_, "client");
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Stream> wire_;  // the client's end
  std::shared_ptr<tls::Handshake> handshake_;
  std::optional<tls::Handshake::Outcome> outcome_;
  std::unique_ptr<tls::TlsStream> server_;
  tls::Records client_{credentials()->context(), false};
  Buffer unread_;   // what the client has not consumed
  Buffer leaving_;  // the client's output that has not been passed on
  Buffer said_;     // data that the server has not read
  bool is_connected_ = false;
  unsigned char counter_ = 0;
};

}  // namespace

void tls_records(Input input) { TlsScene().run(input); }

}  // namespace batchrpc::fuzz
