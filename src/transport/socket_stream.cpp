#include "transport/socket_stream.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/socket_address.hpp"
#include "transport/socket_options.hpp"

namespace batchrpc::detail {
namespace {

constexpr std::size_t kMaxBuffers = 64;

bool is_would_block(int error) noexcept { return error == EAGAIN || error == EWOULDBLOCK; }

/// The result of recv or send and the like.
IoResult result_of(ssize_t moved) noexcept {
  if (moved >= 0) return {.bytes = static_cast<std::size_t>(moved), .error = {}};
  if (is_would_block(errno)) return {};
  return {.bytes = 0, .error = {errno, std::generic_category()}};
}

/// A message over as many of the buffers as one call takes.
template <class Byte>
class Message {
 public:
  explicit Message(std::span<const std::span<Byte>> buffers) noexcept {
    header_.msg_iov = iovecs_;
    header_.msg_iovlen = std::min(buffers.size(), kMaxBuffers);
    for (std::size_t i = 0; i < header_.msg_iovlen; ++i) {
      iovecs_[i] = {const_cast<std::byte*>(buffers[i].data()), buffers[i].size()};
      bytes_ += buffers[i].size();
    }
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  [[nodiscard]] msghdr* get() noexcept { return &header_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  iovec iovecs_[kMaxBuffers];
  msghdr header_{};
  std::size_t bytes_ = 0;
};

template <class Call>
ssize_t uninterrupted(Call call) noexcept {
  ssize_t result = 0;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

SocketStream::SocketStream(std::shared_ptr<LoopCore> core, std::shared_ptr<Descriptor> descriptor,
                           std::string peer, std::shared_ptr<void> place,
                           std::shared_ptr<const PeerProof> proof)
    : core_(std::move(core)),
      descriptor_(std::move(descriptor)),
      fd_(descriptor_->fd()),
      peer_(std::move(peer)),
      place_(std::move(place)),
      proof_(std::move(proof)) {
  set_options(fd_);
}

SocketStream::~SocketStream() { descriptor_->close(); }

IoResult SocketStream::try_read(std::span<const std::span<std::byte>> buffers) noexcept {
  ssize_t count = 0;
  std::size_t room = 0;
  descriptor_->expect_drained();
  if (buffers.size() == 1) {
    room = buffers[0].size();
    count = uninterrupted(
        [&] { return ::recv(fd_, buffers[0].data(), buffers[0].size(), MSG_DONTWAIT); });
  } else {
    Message message(buffers);
    room = message.bytes();
    count = uninterrupted([&] { return ::recvmsg(fd_, message.get(), MSG_DONTWAIT); });
  }
  IoResult result = result_of(count);
  result.end = count == 0 && room > 0;
  if (result.bytes == room) descriptor_->not_drained();
  return result;
}

IoResult SocketStream::try_write(std::span<const std::span<const std::byte>> buffers) noexcept {
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  ssize_t count = 0;
  std::size_t offered = 0;
  descriptor_->expect_full();
  if (buffers.size() == 1) {
    offered = buffers[0].size();
    count = uninterrupted([&] { return ::send(fd_, buffers[0].data(), offered, kFlags); });
  } else {
    Message message(buffers);
    offered = message.bytes();
    count = uninterrupted([&] { return ::sendmsg(fd_, message.get(), kFlags); });
  }
  const IoResult result = result_of(count);
  if (result.bytes == offered) descriptor_->not_full();
  return result;
}

void SocketStream::wait_readable(Task handler) { descriptor_->wait_readable(std::move(handler)); }
void SocketStream::wait_writable(Task handler) { descriptor_->wait_writable(std::move(handler)); }

// A TCP socket that is closed with unread input drops its unsent data. Data that a Unix socket has
// taken already belongs to the peer.
std::size_t SocketStream::unconfirmed_bytes() const noexcept {
  int domain = AF_UNIX;
  socklen_t size = sizeof domain;
  int bytes = 0;
  if (::getsockopt(fd_, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain == AF_UNIX ||
      ::ioctl(fd_, SIOCOUTQ, &bytes) != 0) {
    return 0;
  }
  return static_cast<std::size_t>(bytes);
}

void SocketStream::shutdown() noexcept { ::shutdown(fd_, SHUT_RDWR); }
Address SocketStream::local_address() const { return to_address(own_address(fd_)); }

}  // namespace batchrpc::detail
