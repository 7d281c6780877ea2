#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <memory>
#include <mutex>

#include "transport/reactor.hpp"
#include "transport/strand.hpp"

namespace batchrpc::detail {

/// The state that the loops embedded in one io_context share: the turn in which they run their
/// tasks, and the reactor, which the context knows as one descriptor. Thread-safe.
class HostContext : public std::enable_shared_from_this<HostContext> {
 public:
  /// Returns the object of `io`. It is created with the first loop there and ends with the context.
  static std::shared_ptr<HostContext> of(asio::io_context& io);

  explicit HostContext(asio::io_context& io);
  ~HostContext() { end(); }
  HostContext(const HostContext&) = delete;
  HostContext& operator=(const HostContext&) = delete;

  [[nodiscard]] Strand& turn() noexcept { return turn_; }
  [[nodiscard]] const std::shared_ptr<Reactor>& reactor() const noexcept { return reactor_; }

  /// Between hold() and release() the context has work, and events are handed out.
  void hold();
  void release();

  /// Called when the context ends. May be called several times.
  void end();

 private:
  enum class Doing : unsigned char {
    nothing,
    watching,     // a wait of watch_ is in progress
    handing_out,  // or about to
  };

  class HandingOut;

  void watch();  // the caller must hold mutex_
  void collect();
  void hand_out();
  void go_on();

  asio::io_context& io_;
  Strand turn_;
  const std::shared_ptr<Reactor> reactor_;

  // Used only by the thread that hands out events, one at a time.
  std::array<epoll_event, 128> events_;
  std::size_t next_event_ = 0;
  std::size_t end_of_events_ = 0;

  const pid_t process_ = ::getpid();
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<asio::posix::stream_descriptor>
      watch_;  // watches the reactor's descriptor, which the reactor owns
  int holds_ = 0;
  Doing doing_ = Doing::nothing;
};

}  // namespace batchrpc::detail
