#include "status/http_server.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/start_thread.hpp"
#include "status/clock.hpp"
#include "status/connection.hpp"
#include "status/http_answer.hpp"
#include "status/listener.hpp"
#include "transport/signals_blocked.hpp"

namespace batchrpc::status {

// State shared by the server's threads. A thread that ends the server itself outlives it.
class HttpServer::Parts {
 public:
  Parts(Listener listener, Answer answer, const HttpLimits& limits, Channels channels)
      : listener_(std::move(listener)),
        answer_(std::move(answer)),
        limits_(limits),
        channels_(std::move(channels)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  static void start(const std::shared_ptr<Parts>& self) {
    const detail::SignalsBlocked no_signals;
    self->threads_.reserve(self->limits_.threads + 1);
    try {
      self->threads_.push_back(
          start_thread("the status page", [self] { self->wait_for_sockets(); }));
      for (std::size_t i = 0; i < self->limits_.threads; ++i)
        self->threads_.push_back(
            start_thread("the status page", [self] { self->answer_requests(); }));
    } catch (...) {
      self->stop();
      throw;
    }
  }

  void stop() {
    std::vector<std::thread> threads;
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      threads.swap(threads_);
    }
    changed_.notify_all();
    wake();
    for (std::thread& thread : threads)
      thread.get_id() == std::this_thread::get_id() ? thread.detach() : thread.join();
  }

  [[nodiscard]] const Listener& listener() const noexcept { return listener_; }

 private:
  struct Job {
    std::uint64_t connection = 0;
    std::string text{};                               // the request's head, or the answer
    std::shared_ptr<const std::atomic<bool>> gone{};  // whether the client is gone
  };

  void wake() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  }

  // --- a thread that answers

  void answer_requests() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopped_ || !requests_.empty(); });
      if (stopped_) return;
      Job job = std::move(requests_.front());
      requests_.pop_front();
      lock.unlock();
      job.text = answer_(job.text, [&] { return job.gone->load(); });
      lock.lock();
      answers_.push_back(std::move(job));
      wake();
    }
  }

  // --- the thread that waits for sockets

  void wait_for_sockets() {
    std::vector<pollfd> polled;
    while (take_answers()) {
      polled.clear();
      polled.push_back({.fd = wake_.get(), .events = POLLIN, .revents = 0});
      polled.push_back(
          {.fd = accepting_ ? listener_.socket.get() : -1, .events = POLLIN, .revents = 0});
      Clock::time_point until = Clock::time_point::max();
      for (const auto& [number, connection] : connections_) {
        polled.push_back({.fd = connection.socket(), .events = connection.events(), .revents = 0});
        if (connection.state() != Connection::State::answering) {
          until = std::min(until, connection.deadline());
        }
      }
      ::poll(polled.data(), polled.size(), milliseconds_to(until));
      if (polled[0].revents != 0) {
        std::uint64_t wakes = 0;
        [[maybe_unused]] const ssize_t bytes = ::read(wake_.get(), &wakes, sizeof wakes);
      }
      go_on(polled);
      accepting_ = true;
      if (polled[1].revents != 0) accept_some();
    }
    connections_.clear();
    // Another server can listen there at once, even if a child of fork() has a copy of the socket.
    ::shutdown(listener_.socket.get(), SHUT_RDWR);
    listener_.socket = OwnedFd();
  }

  [[nodiscard]] int milliseconds_to(Clock::time_point until) const {
    constexpr std::chrono::milliseconds kLongestPause(1000);
    if (!accepting_) return 20;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::min<Clock::duration>(
        until == Clock::time_point::max() ? kLongestPause : until - now(), kLongestPause));
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

  // Returns false when the server is stopping.
  bool take_answers() {
    std::vector<Job> answers;
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return false;
      answers.swap(answers_);
    }
    for (Job& job : answers) {
      const auto at = connections_.find(job.connection);
      if (at == connections_.end()) continue;
      at->second.answer(std::move(job.text));
      at->second.go_on();
      if (at->second.state() == Connection::State::over) connections_.erase(at);
    }
    return true;
  }

  void go_on(const std::vector<pollfd>& polled) {
    const Clock::time_point time = now();
    std::size_t place = 2;
    for (auto at = connections_.begin(); at != connections_.end();) {
      Connection& connection = at->second;
      const short events = polled[place++].revents;
      const bool was_reading = connection.state() == Connection::State::reading;
      if ((events & (POLLERR | POLLNVAL)) != 0) {
        connection.end();
      } else if ((events & POLLHUP) != 0 && connection.state() == Connection::State::answering) {
        connection.end();
      } else if (events != 0) {
        connection.go_on();
      }
      connection.expire(time);
      if (was_reading && connection.state() == Connection::State::answering) {
        pass_on(at->first, connection);
      }
      at = connection.state() == Connection::State::over ? connections_.erase(at) : std::next(at);
    }
  }

  void pass_on(std::uint64_t number, Connection& connection) {
    {
      const std::lock_guard lock(mutex_);
      if (requests_.size() < limits_.connections) {  // requests of clients that are gone count, too
        requests_.push_back({number, connection.take_head(), connection.gone()});
        changed_.notify_one();
        return;
      }
    }
    connection.answer(plain_answer(503, "Service Unavailable"));
  }

  void accept_some() {
    for (std::size_t i = 0; i < limits_.connections; ++i) {
      OwnedFd socket(
          ::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket.get() < 0) {
        accepting_ = errno != EMFILE && errno != ENFILE;  // then pause briefly: otherwise poll()
                                                          // would return at once, again and again
        return;
      }
      if (connections_.size() >= limits_.connections) drop_slowest();
      if (auto channel = channels_(std::move(socket))) {
        connections_.try_emplace(next_++, std::move(channel), limits_);
      }
    }
  }

  // Drops the oldest connection that waits for its client; if there is none, the oldest of all.
  void drop_slowest() {
    const auto at = std::find_if(connections_.begin(), connections_.end(), [](const auto& entry) {
      return entry.second.state() != Connection::State::answering;
    });
    connections_.erase(at == connections_.end() ? connections_.begin() : at);
  }

  Listener listener_;
  const Answer answer_;
  const HttpLimits limits_;
  const Channels channels_;
  const OwnedFd wake_;
  std::map<std::uint64_t, Connection> connections_;  // oldest first
  std::uint64_t next_ = 1;
  bool accepting_ = true;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Job> requests_;
  std::vector<Job> answers_;
  std::vector<std::thread> threads_;
  bool stopped_ = false;
};

HttpServer::HttpServer(Listener listener, Answer answer, const HttpLimits& limits,
                       Channels channels)
    : parts_(std::make_shared<Parts>(std::move(listener), std::move(answer), limits,
                                     std::move(channels))) {
  Parts::start(parts_);
}

HttpServer::~HttpServer() { stop(); }

void HttpServer::stop() { parts_->stop(); }

const ListenAddress& HttpServer::address() const noexcept { return parts_->listener().address; }

}  // namespace batchrpc::status
