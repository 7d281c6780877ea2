#pragma once

#include <unistd.h>

#include <utility>

#include "status/listen_address.hpp"

namespace batchrpc::status {

/// A file descriptor that closes itself.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) noexcept : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

/// A socket that listens.
struct Listener {
  OwnedFd socket{};
  ListenAddress address{};  ///< with its actual port
  bool is_loopback = false;
};

/// Throws JoinFailed with the address and a remedy.
[[nodiscard]] Listener listen_at(const ListenAddress& address);

}  // namespace batchrpc::status
