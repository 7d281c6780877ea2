#include "status/connection.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "status/http_answer.hpp"

namespace batchrpc::status {
namespace {

// Returns where the text after a request's head begins; npos if the head is not complete.
std::size_t end_of_head(const std::string& text, std::size_t from) {
  for (std::size_t at = text.find('\n', from); at != std::string::npos;
       at = text.find('\n', at + 1)) {
    if (text.compare(at + 1, 1, "\n") == 0) return at + 2;
    if (text.compare(at + 1, 2, "\r\n") == 0) return at + 3;
  }
  return std::string::npos;
}

}  // namespace

short Connection::events() const noexcept {
  switch (state_) {
    case State::reading:
      return channel_->awaited(POLLIN);
    case State::writing:
      return channel_->awaited(POLLOUT);
    case State::lingering:
      return POLLIN;
    case State::answering:
      return *gone_ ? short{0} : short{POLLRDHUP};  // once: poll() reports it again and again
    default:
      return 0;
  }
}

void Connection::go_on() {
  if (state_ == State::answering) *gone_ = true;
  if (state_ == State::reading) read();
  if (state_ == State::writing) write();
  if (state_ == State::lingering) linger();
}

void Connection::read() {
  std::array<char, 4096> block;
  while (true) {
    const std::optional<std::size_t> bytes = channel_->read(block.data(), block.size());
    if (!bytes) return;
    if (*bytes == 0) {
      state_ = State::over;
      return;
    }
    const std::size_t seen = in_.size() < 3 ? 0 : in_.size() - 3;
    in_.append(block.data(), *bytes);
    const std::size_t end = end_of_head(in_, seen);
    if (end != std::string::npos && end <= limits_.head_bytes) {
      in_.resize(end);
      state_ = State::answering;
      return;
    }
    if (in_.size() > limits_.head_bytes) {
      in_.clear();
      answer(plain_answer(431, "Request Header Fields Too Large"));
      return;
    }
  }
}

void Connection::answer(std::string answer) {
  out_ = std::move(answer);
  state_ = State::writing;
  deadline_ = now() + limits_.write;
  last_ = deadline_ + std::chrono::milliseconds(out_.size() * 1000 / limits_.write_rate);
}

void Connection::write() {
  while (written_ < out_.size()) {
    const std::optional<std::size_t> bytes =
        channel_->write(out_.data() + written_, out_.size() - written_);
    if (!bytes) return;
    if (*bytes == 0) {
      state_ = State::over;
      return;
    }
    written_ += *bytes;
    deadline_ = std::min(now() + limits_.write, last_);
  }
  if (!channel_->end_sending()) return;
  out_ = {};
  state_ = State::lingering;
  deadline_ = now() + limits_.linger;
}

void Connection::linger() {
  std::array<char, 4096> block;
  for (int round = 0; round < 16; ++round) {
    const ssize_t bytes = ::recv(channel_->socket(), block.data(), block.size(), MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (bytes <= 0) {
      state_ = State::over;
      return;
    }
  }
}

}  // namespace batchrpc::status
