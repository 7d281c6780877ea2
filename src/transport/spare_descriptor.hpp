#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace batchrpc::detail {

/// Holds a descriptor in reserve. A listener gives it up to take a connection out of its queue when
/// no other descriptors are left, closes the connection, and takes the descriptor back.
class SpareDescriptor {
 public:
  SpareDescriptor() noexcept { take_back(); }
  ~SpareDescriptor() { give_up(); }
  SpareDescriptor(const SpareDescriptor&) = delete;
  SpareDescriptor& operator=(const SpareDescriptor&) = delete;

  void give_up() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  /// Returns whether it has one. Another thread may have been faster.
  bool take_back() noexcept {
    if (fd_ < 0) fd_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd_ >= 0;
  }

 private:
  int fd_ = -1;
};

}  // namespace batchrpc::detail
