#include "soak/link.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace soak {

namespace {

constexpr std::size_t kLongest = 4096;

}  // namespace

Link::~Link() {
  if (file_ >= 0) ::close(file_);
}

Link& Link::operator=(Link&& other) noexcept {
  Link old(std::move(*this));
  file_ = std::exchange(other.file_, -1);
  return *this;
}

std::pair<Link, Link> Link::pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  return {Link(ends[0]), Link(ends[1])};
}

void Link::set_inherited(bool inherited) const {
  ::fcntl(file_, F_SETFD, inherited ? 0 : FD_CLOEXEC);
}

bool Link::try_send(const std::string& text) const {
  const std::size_t size = std::min(text.size(), kLongest);
  return ::send(file_, text.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
         (errno != EAGAIN && errno != EWOULDBLOCK);
}

std::optional<std::string> Link::receive(bool& ended) const {
  std::string text(kLongest, '\0');
  const ssize_t count = ::recv(file_, text.data(), text.size(), MSG_DONTWAIT);
  if (count > 0) {
    text.resize(static_cast<std::size_t>(count));
    return text;
  }
  ended = count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  return std::nullopt;
}

void Link::wait(std::chrono::milliseconds time) const {
  pollfd waiting{.fd = file_, .events = POLLIN, .revents = 0};
  ::poll(&waiting, 1, static_cast<int>(time.count()));
}

void Report::add(std::string line) {
  const std::lock_guard lock(mutex_);
  lines_.push_back(std::move(line));
}

bool Report::flush(const Link& link) {
  const std::lock_guard lock(mutex_);
  while (!lines_.empty() && link.try_send(lines_.front()))
    lines_.pop_front();
  return lines_.empty();
}

}  // namespace soak
