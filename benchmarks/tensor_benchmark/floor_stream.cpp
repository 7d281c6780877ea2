#include "tensor_benchmark/floor_stream.hpp"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace tensor_benchmark {

namespace {

constexpr timeval kLook{.tv_sec = 0,
                        .tv_usec = 100'000};  // how often it calls `check` while it waits
constexpr std::size_t kTogetherBytes = 64 * 1024;

[[noreturn]] void fail(const char* what) {
  if (errno == EPIPE || errno == ECONNRESET) throw EndOfStream();
  throw std::system_error(errno, std::generic_category(), what);
}

/// Enlarges a Unix socket's buffers up to a mebibyte, as far as the system allows. TCP's buffers
/// grow by themselves unless they are set.
void hold_much(int socket) {
  int family = 0;
  socklen_t size = sizeof family;
  if (::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0) fail("getsockopt");
  const int bytes = 1 << 20;
  if (family == AF_UNIX && ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) != 0) {
    fail("setsockopt");
  }
}

}  // namespace

FloorStream::FloorStream(batchrpc_benchmarks::Socket socket, Check check)
    : socket_(std::move(socket)), check_(std::move(check)) {
  hold_much(socket_.get());
  for (const int which : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    if (check_ && ::setsockopt(socket_.get(), SOL_SOCKET, which, &kLook, sizeof kLook) != 0) {
      fail("setsockopt");
    }
  }
}

void FloorStream::look() const {
  if (check_) check_();
}

void FloorStream::send(std::span<iovec> parts) const {
  while (!parts.empty()) {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) fail("sendmsg");
      look();
      continue;
    }
    auto rest = static_cast<std::size_t>(sent);
    while (!parts.empty() && rest >= parts.front().iov_len) {
      rest -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
    if (parts.empty()) return;
    parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + rest;
    parts.front().iov_len -= rest;
  }
}

void FloorStream::send(std::span<const std::byte> bytes) const {
  iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  send(std::span(&part, 1));
}

std::size_t FloorStream::receive(std::span<std::byte> room, bool wait) const {
  while (true) {
    const ssize_t count = ::recv(socket_.get(), room.data(), room.size(), wait ? 0 : MSG_DONTWAIT);
    if (count > 0) return static_cast<std::size_t>(count);
    if (count == 0) throw EndOfStream();
    if (errno != EAGAIN && errno != EINTR) fail("recv");
    if (!wait) return 0;
    look();
  }
}

void FloorStream::end() const { ::shutdown(socket_.get(), SHUT_RDWR); }

MessageRing::MessageRing(std::size_t payload_bytes, std::size_t slots)
    : message_bytes_(message_bytes(payload_bytes)), memory_(slots * message_bytes_) {}

std::size_t MessageRing::receive(const FloorStream& stream, bool wait) {
  const std::size_t count = stream.receive(std::span(memory_).subspan(position_), wait);
  position_ = (position_ + count) % memory_.size();
  partial_ += count;
  const std::size_t whole = partial_ / message_bytes_;
  partial_ %= message_bytes_;
  return whole;
}

std::span<const std::byte> MessageRing::message(std::size_t number) const {
  const std::size_t slots = memory_.size() / message_bytes_;
  return std::span(memory_).subspan(number % slots * message_bytes_, message_bytes_);
}

std::size_t together(std::size_t payload_bytes, std::size_t window) {
  return std::clamp(kTogetherBytes / MessageRing::message_bytes(payload_bytes), std::size_t{1},
                    window);
}

}  // namespace tensor_benchmark
