#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "call_benchmark/channel.hpp"
#include "common/throw_errno.hpp"

namespace call_benchmark {

namespace {

/// Wakes a thread from epoll_wait.
class Event {
 public:
  Event() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor_ < 0) batchrpc_benchmarks::throw_errno("eventfd");
  }
  ~Event() { ::close(descriptor_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  void set() const { ::eventfd_write(descriptor_, 1); }
  void reset() const {
    eventfd_t count = 0;
    ::eventfd_read(descriptor_, &count);
  }

 private:
  int descriptor_;
};

/// A one-way byte queue. The reader's event is set while there is data, or after the writer has
/// closed.
class Queue {
 public:
  [[nodiscard]] int descriptor() const { return event_.descriptor(); }

  void push(std::span<const std::byte> bytes) {
    bool was_empty = false;
    {
      const std::lock_guard lock(mutex_);
      if (closed_) throw EndOfChannel();
      was_empty = bytes_.empty();
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    if (was_empty) event_.set();
  }

  std::size_t pop(std::span<std::byte> room) {
    event_.reset();
    const std::lock_guard lock(mutex_);
    const std::size_t count = std::min(room.size(), bytes_.size());
    if (count == 0 && closed_) throw EndOfChannel();
    std::copy_n(bytes_.begin(), count, room.begin());
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(count));
    if (!bytes_.empty()) event_.set();
    return count;
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    event_.set();
  }

 private:
  Event event_;
  std::mutex mutex_;
  std::vector<std::byte> bytes_;
  bool closed_ = false;
};

class InprocChannel final : public Channel {
 public:
  InprocChannel(std::shared_ptr<Queue> in, std::shared_ptr<Queue> out)
      : in_(std::move(in)), out_(std::move(out)) {}
  ~InprocChannel() override {
    in_->close();
    out_->close();
  }
  [[nodiscard]] int descriptor() const override { return in_->descriptor(); }
  std::size_t receive(std::span<std::byte> room) override { return in_->pop(room); }
  void send(std::span<const std::byte> bytes) override { out_->push(bytes); }

 private:
  std::shared_ptr<Queue> in_;
  std::shared_ptr<Queue> out_;
};

class Hub final : public InprocAcceptor {
 public:
  [[nodiscard]] int descriptor() const override { return event_.descriptor(); }
  [[nodiscard]] std::string address() const override { return {}; }

  std::unique_ptr<Channel> accept() override {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return nullptr;
    std::unique_ptr<Channel> channel = std::move(waiting_.front());
    waiting_.pop_front();
    if (waiting_.empty() && !closed_) event_.reset();
    return channel;
  }

  std::unique_ptr<Channel> connect() override {
    const auto there = std::make_shared<Queue>();
    const auto back = std::make_shared<Queue>();
    auto channel = std::make_unique<InprocChannel>(back, there);
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::make_unique<InprocChannel>(there, back));
    event_.set();
    return channel;
  }

  void close() override {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    event_.set();
  }

 private:
  Event event_;
  std::mutex mutex_;
  std::deque<std::unique_ptr<Channel>> waiting_;
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<InprocAcceptor> InprocAcceptor::make() { return std::make_unique<Hub>(); }

}  // namespace call_benchmark
