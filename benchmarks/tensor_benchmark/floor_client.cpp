#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "tensor_benchmark/floor.hpp"
#include "tensor_benchmark/floor_stream.hpp"
#include "tensor_benchmark/permits.hpp"

namespace tensor_benchmark {

namespace {

/// The bytes of a tensor, dense.
class Dense {
 public:
  explicit Dense(const at::Tensor& tensor)
      : tensor_(tensor),
        buffer_(tensor.is_contiguous() ? tensor
                                       : at::empty_like(tensor, {}, at::MemoryFormat::Contiguous)) {
  }

  /// Valid until it is asked for again.
  std::byte* get() {
    if (!buffer_.is_same(tensor_)) buffer_.copy_(tensor_);
    return static_cast<std::byte*>(buffer_.data_ptr());
  }

 private:
  at::Tensor tensor_;
  at::Tensor buffer_;
};

class FloorClient final : public Client {
 public:
  FloorClient(batchrpc_benchmarks::Socket socket, const Case& which, const at::Tensor& tensor,
              Check check)
      : which_(which),
        window_(static_cast<std::size_t>(which.window)),
        together_(together(which.bytes, window_)),
        check_(std::move(check)),
        stream_(std::move(socket), check_),
        dense_(tensor),
        replies_(which.mode == Mode::echo ? which.bytes : 0,
                 which.mode == Mode::echo ? together_ : window_) {
    const FloorHello hello{.bytes = which.bytes,
                           .window = static_cast<std::uint32_t>(which.window),
                           .echo = which.mode == Mode::echo ? 1U : 0U};
    stream_.send(std::as_bytes(std::span(&hello, 1)));
  }

  Outcome run(double seconds) override {
    return which_.mode == Mode::echo && window_ > 1 ? run_both_ways(seconds) : run_in_turn(seconds);
  }

 private:
  /// Sends where the window has room, and receives. What comes back is small, or comes back before
  /// the next is sent.
  Outcome run_in_turn(double seconds) {
    const RunTime time(seconds);
    Outcome outcome;
    Clock::time_point now = time.begin();
    bool over = false;
    while (true) {
      const std::size_t room = over ? 0 : window_ - sent_.size();
      if (room > 0) send(std::min(room, together_), now);
      if (sent_.empty()) break;
      const std::size_t count = replies_.receive(stream_, over || sent_.size() == window_);
      now = Clock::now();
      note(count, now, outcome);
      over = time.is_over(now) && outcome.us.size() + sent_.size() >= window_;
      check_();
    }
    outcome.seconds = time.passed();
    return outcome;
  }

  /// Sends on a thread of its own.
  Outcome run_both_ways(double seconds) {
    const RunTime time(seconds);
    Outcome outcome;
    Permits room;
    room.give(window_);
    std::exception_ptr failure;
    std::thread sender([&] {
      try {
        while (const std::size_t count = room.take(together_))
          send(count, Clock::now());
      } catch (...) {
        failure = std::current_exception();
        stream_.end();  // so that the other thread ends, too
      }
    });
    try {
      bool over = false;
      std::size_t left = window_;  // when it is over; those that the sender is still to send, too
      while (left > 0) {
        const std::size_t count = replies_.receive(stream_, true);
        if (count == 0) continue;
        const Clock::time_point now = Clock::now();
        note(count, now, outcome);
        over = over || time.is_over(now);
        if (over) {
          left -= count;
        } else {
          room.give(count);
        }
        check_();
      }
      room.end();
      sender.join();
    } catch (...) {
      room.end();
      stream_.end();
      sender.join();
      if (failure) std::rethrow_exception(failure);
      throw;
    }
    outcome.seconds = time.passed();
    return outcome;
  }

  void send(std::size_t count, Clock::time_point now) {
    std::byte* const bytes = dense_.get();
    headers_.resize(count, {.bytes = which_.bytes, .number = 0});
    parts_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      headers_[i].number = number_++;
      parts_.push_back({.iov_base = &headers_[i], .iov_len = sizeof(FloorHeader)});
      parts_.push_back({.iov_base = bytes, .iov_len = which_.bytes});
    }
    {
      const std::lock_guard lock(mutex_);
      sent_.insert(sent_.end(), count, now);
    }
    stream_.send(parts_);
  }

  void note(std::size_t count, Clock::time_point now, Outcome& outcome) {
    const std::lock_guard lock(mutex_);
    for (; count > 0; --count) {
      outcome.us.push_back(microseconds(now - sent_.front()));
      sent_.pop_front();
    }
  }

  const Case which_;
  const std::size_t window_;
  const std::size_t together_;
  const Check check_;
  const FloorStream stream_;
  Dense dense_;
  MessageRing replies_;
  std::uint64_t number_ = 0;
  std::vector<FloorHeader> headers_;  // of whoever sends
  std::vector<iovec> parts_;
  std::mutex mutex_;
  std::deque<Clock::time_point> sent_;  // of what is under way; replies come in order
};

class MemoryFloor final : public Client {
 public:
  MemoryFloor(const Case& which, const at::Tensor& tensor, Check check)
      : which_(which), check_(std::move(check)), dense_(tensor), there_(which.bytes) {
    if (which.mode == Mode::echo) back_.resize(which.bytes);
  }

  Outcome run(double seconds) override {
    const RunTime time(seconds);
    Outcome outcome;
    for (Clock::time_point now = time.begin();;) {
      const std::byte* const bytes = dense_.get();
      std::memcpy(there_.data(), bytes, which_.bytes);
      if (!back_.empty()) std::memcpy(back_.data(), there_.data(), which_.bytes);
      const Clock::time_point end = Clock::now();
      outcome.us.push_back(microseconds(end - std::exchange(now, end)));
      check_();
      if (time.is_over(end)) break;
    }
    outcome.seconds = time.passed();
    return outcome;
  }

 private:
  const Case which_;
  const Check check_;
  Dense dense_;
  std::vector<std::byte> there_;
  std::vector<std::byte> back_;
};

}  // namespace

std::unique_ptr<Client> make_floor_client(batchrpc_benchmarks::Socket socket, const Case& which,
                                          const at::Tensor& tensor, Check check) {
  return std::make_unique<FloorClient>(std::move(socket), which, tensor, std::move(check));
}

std::unique_ptr<Client> make_memory_floor(const Case& which, const at::Tensor& tensor,
                                          Check check) {
  return std::make_unique<MemoryFloor>(which, tensor, std::move(check));
}

}  // namespace tensor_benchmark
