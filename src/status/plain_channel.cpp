#include <sys/socket.h>

#include <cerrno>

#include "status/channel.hpp"

namespace batchrpc::status {
namespace {

std::optional<std::size_t> moved(ssize_t bytes) noexcept {
  if (bytes >= 0) return static_cast<std::size_t>(bytes);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return std::nullopt;
  return 0;
}

class PlainChannel final : public Channel {
 public:
  using Channel::Channel;

  std::optional<std::size_t> read(char* to, std::size_t size) override {
    return moved(::recv(socket(), to, size, MSG_DONTWAIT));
  }
  std::optional<std::size_t> write(const char* from, std::size_t size) override {
    return moved(::send(socket(), from, size, MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  bool end_sending() override {
    ::shutdown(socket(), SHUT_WR);
    return true;
  }
};

}  // namespace

std::unique_ptr<Channel> plain_channel(OwnedFd socket) {
  return std::make_unique<PlainChannel>(std::move(socket));
}

}  // namespace batchrpc::status
