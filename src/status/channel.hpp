#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "status/listener.hpp"

namespace batchrpc::status {

/// A client's socket, which never blocks, and how bytes travel on it: plain, or by TLS.
class Channel {
 public:
  explicit Channel(OwnedFd socket) noexcept : socket_(std::move(socket)) {}
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Moves some bytes. Returns how many; zero if the connection is over; nothing if the socket has
  /// to be waited for first.
  /// @{
  [[nodiscard]] virtual std::optional<std::size_t> read(char* to, std::size_t size) = 0;
  [[nodiscard]] virtual std::optional<std::size_t> write(const char* from, std::size_t size) = 0;
  /// @}
  /// Ends the sending half. Returns false if the socket has to be waited for first.
  [[nodiscard]] virtual bool end_sending() = 0;
  /// Returns the events, as in poll(), to wait for before `wanted` (POLLIN or POLLOUT) goes on.
  [[nodiscard]] virtual short awaited(short wanted) const noexcept { return wanted; }

  [[nodiscard]] int socket() const noexcept { return socket_.get(); }

 private:
  OwnedFd socket_;
};

/// Makes the channel of an accepted socket; null if it cannot. Thread-safe.
using Channels = std::function<std::unique_ptr<Channel>(OwnedFd socket)>;

[[nodiscard]] std::unique_ptr<Channel> plain_channel(OwnedFd socket);

/// Whether this build has TLS.
[[nodiscard]] bool has_tls() noexcept;

/// Returns what makes channels of TLS 1.3, with the certificate (and those that it depends on) and
/// its private key in these PEM files. Throws InvalidArgument if they cannot be used, or if this
/// build has no TLS.
[[nodiscard]] Channels tls_channels(const std::string& certificate, const std::string& key);

}  // namespace batchrpc::status
