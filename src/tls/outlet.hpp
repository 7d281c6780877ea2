#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "batchrpc/base/function.hpp"
#include "batchrpc/transport/loop.hpp"
#include "batchrpc/transport/stream.hpp"

namespace batchrpc::tls {

/// The stream below a TLS stream, and encrypted bytes that it has not taken yet. One thread at a
/// time writes, and holds the lock. Owned by shared pointers: handlers that wait refer to it
/// weakly.
class Outlet : public std::enable_shared_from_this<Outlet> {
 public:
  enum class Sent : unsigned char { all, blocked, failed };

  Outlet(std::shared_ptr<Loop> loop, std::unique_ptr<Stream> below)
      : loop_(std::move(loop)), below_(std::move(below)) {}

  [[nodiscard]] Stream& below() const noexcept { return *below_; }
  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }

  /// The caller must hold the mutex for the next four.
  /// @{
  /// Sends as much as the stream takes now.
  Sent send() noexcept;
  /// The bytes to send next. Only while everything has left.
  [[nodiscard]] std::vector<std::byte>& next() noexcept { return bytes_; }
  /// Returns why nothing can be sent any longer.
  [[nodiscard]] std::error_code error() const noexcept { return error_; }
  /// Sends nothing from now on.
  void fail(std::error_code error) noexcept { error_ = error; }
  /// @}

  /// Returns the number of bytes that have not left. Any thread.
  [[nodiscard]] std::size_t left() const noexcept { return left_.load(std::memory_order_relaxed); }

  /// Sends the rest when the stream takes it, even if nobody writes again. Any thread.
  void send_later();
  /// Calls `handler` once, on the loop, when all bytes have left and the stream takes more, or when
  /// it has failed.
  void wait_writable(Task handler);
  /// The TLS stream goes: a handler that waits is destroyed.
  void close() noexcept;

 private:
  void wait_below();
  void on_writable();

  const std::shared_ptr<Loop> loop_;
  const std::unique_ptr<Stream> below_;
  std::atomic<std::size_t> left_{0};  // of bytes_, at its end

  std::mutex waiting_;  // guards the next three
  Task handler_;
  bool waits_ = false;  // it waits for the stream below, or is about to
  bool closed_ = false;

  std::mutex mutex_;  // guards what follows
  std::vector<std::byte> bytes_;
  std::error_code error_;
};

}  // namespace batchrpc::tls
