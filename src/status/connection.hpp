#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "status/channel.hpp"
#include "status/clock.hpp"
#include "status/http_server.hpp"

namespace batchrpc::status {

/// A client's connection. Only the thread that waits for sockets uses it.
class Connection {
 public:
  enum class State : unsigned char {
    reading,    ///< the request is not complete; with TLS, this begins with the handshake
    answering,  ///< another thread is computing the answer
    writing,
    lingering,  ///< all was written, and further input is discarded: a client that is reset while
                ///< it writes may lose the answer
    over
  };

  Connection(std::unique_ptr<Channel> channel, const HttpLimits& limits)
      : channel_(std::move(channel)), limits_(limits), deadline_(now() + limits.head) {}
  ~Connection() { *gone_ = true; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Reads and writes as far as possible now.
  void go_on();
  /// Takes the answer to be written.
  void answer(std::string answer);
  /// Ends the connection if its deadline has passed.
  void expire(Clock::time_point at) {
    if (state_ != State::answering && at >= deadline_) state_ = State::over;
  }
  void end() noexcept { state_ = State::over; }

  /// Whether the client has closed its side while the answer is computed. May be read on any
  /// thread.
  [[nodiscard]] std::shared_ptr<const std::atomic<bool>> gone() const noexcept { return gone_; }
  [[nodiscard]] State state() const noexcept { return state_; }
  /// Returns the complete request's head. Call it once.
  [[nodiscard]] std::string take_head() { return std::exchange(in_, {}); }
  [[nodiscard]] int socket() const noexcept { return channel_->socket(); }
  /// The events to wait for, as in poll().
  [[nodiscard]] short events() const noexcept;
  [[nodiscard]] Clock::time_point deadline() const noexcept { return deadline_; }

 private:
  void read();
  void write();
  void linger();

  const std::unique_ptr<Channel> channel_;
  const HttpLimits& limits_;
  State state_ = State::reading;
  Clock::time_point deadline_;
  std::string in_;
  std::string out_;
  std::size_t written_ = 0;
  Clock::time_point last_{};  // deadline for the whole answer: a trace holds much memory until then
  const std::shared_ptr<std::atomic<bool>> gone_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace batchrpc::status
