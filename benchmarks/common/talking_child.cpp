#include "common/talking_child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>

namespace batchrpc_benchmarks {

TalkingChild::TalkingChild(
    const std::function<std::vector<std::string>(int line_file)>& arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe2");
  }
  file_ = ends[0];
  ::fcntl(ends[1], F_SETFD, 0);  // the child keeps this end
  try {
    process_.emplace(batchrpc_examples::ProcessOptions{.arguments = arguments(ends[1])});
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
}

TalkingChild::~TalkingChild() {
  process_.reset();
  ::close(file_);
}

std::string TalkingChild::read_line(const std::function<void()>& check) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPatience = std::chrono::seconds(30);
  constexpr int kLookMs = 100;
  const Clock::time_point give_up = Clock::now() + kPatience;
  while (read_.find('\n') == std::string::npos) {
    check();
    if (Clock::now() > give_up) throw std::runtime_error("a child process does not answer");
    pollfd readable{.fd = file_, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, kLookMs) <= 0) continue;
    char buffer[256];
    const ssize_t count = ::read(file_, buffer, sizeof buffer);
    if (count == 0) {
      throw std::runtime_error("a child process " + process_->wait().describe());
    }
    if (count > 0) read_.append(buffer, static_cast<std::size_t>(count));
  }
  const std::size_t end = read_.find('\n');
  std::string line = read_.substr(0, end);
  read_.erase(0, end + 1);
  return line;
}

void write_line(int line_file, const std::string& text) {
  const std::string line = text + "\n";
  if (::write(line_file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw std::system_error(errno, std::generic_category(), "writing to the parent process");
  }
}

void wait_to_be_ended() {
  while (true)
    ::pause();
}

}  // namespace batchrpc_benchmarks
