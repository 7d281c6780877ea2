#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "call_benchmark/epoll.hpp"
#include "call_benchmark/floor.hpp"
#include "call_benchmark/floor_hello.hpp"

namespace call_benchmark {

namespace {

constexpr std::size_t kBufferBytes = 256 * 1024;

/// A client's connection. Its messages are collected at the beginning of a buffer.
class Connection {
 public:
  explicit Connection(std::unique_ptr<Channel> channel)
      : channel_(std::move(channel)), buffer_(kBufferBytes) {}

  [[nodiscard]] int descriptor() const { return channel_->descriptor(); }
  [[nodiscard]] bool busy() const { return hello_.busy != 0; }

  void receive_and_answer() {
    have_ += channel_->receive(std::span(buffer_).subspan(have_));
    std::span<const std::byte> rest(buffer_.data(), have_);
    if (!greeted_) {
      if (rest.size() < sizeof hello_) return;
      std::memcpy(&hello_, rest.data(), sizeof hello_);
      rest = rest.subspan(sizeof hello_);
      greeted_ = true;
      replies_.resize(kBufferBytes / hello_.request_bytes * hello_.reply_bytes);
    }
    const std::size_t count = rest.size() / hello_.request_bytes;
    const std::size_t bytes = count * hello_.request_bytes;
    if (count > 0) {
      const bool echoes = hello_.request_bytes == hello_.reply_bytes;
      channel_->send(echoes
                         ? rest.first(bytes)
                         : std::span<const std::byte>(replies_).first(count * hello_.reply_bytes));
    }
    rest = rest.subspan(bytes);
    std::copy(rest.begin(), rest.end(), buffer_.begin());
    have_ = rest.size();
  }

 private:
  std::unique_ptr<Channel> channel_;
  std::vector<std::byte> buffer_;
  std::size_t have_ = 0;
  FloorHello hello_{};
  bool greeted_ = false;
  std::vector<std::byte> replies_;
};

}  // namespace

void serve_floor(Acceptor& acceptor) {
  constexpr std::uint64_t kAcceptor = 0;
  Epoll epoll;
  epoll.add(acceptor.descriptor(), kAcceptor);
  std::vector<std::unique_ptr<Connection>> connections(
      1);  // by number; null: closed, or the acceptor
  int busy = 0;
  while (true) {
    for (const epoll_event& event : epoll.wait(busy == 0)) {
      if (event.data.u64 == kAcceptor) {
        std::unique_ptr<Channel> channel = acceptor.accept();
        if (!channel) return;
        epoll.add(channel->descriptor(), connections.size());
        connections.push_back(std::make_unique<Connection>(std::move(channel)));
        continue;
      }
      std::unique_ptr<Connection>& connection = connections[event.data.u64];
      const bool was_busy = connection->busy();
      try {
        connection->receive_and_answer();
        if (connection->busy() && !was_busy) ++busy;
      } catch (const EndOfChannel&) {
        if (was_busy) --busy;
        epoll.remove(connection->descriptor());
        connection.reset();
      }
    }
  }
}

FloorServerThread::FloorServerThread(Acceptor& acceptor)
    : acceptor_(acceptor), thread_([&acceptor] { serve_floor(acceptor); }) {}

FloorServerThread::~FloorServerThread() {
  acceptor_.close();
  thread_.join();
}

}  // namespace call_benchmark
