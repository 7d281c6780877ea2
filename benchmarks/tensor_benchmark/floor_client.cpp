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

/// The dense bytes of a tensor: its own, or gathered into reused buffers.
class Dense {
 public:
  Dense(const at::Tensor& tensor, std::size_t buffers) : tensor_(tensor) {
    for (; !tensor.is_contiguous() && buffers > 0; --buffers)
      buffers_.push_back(at::empty_like(tensor, {}, at::MemoryFormat::Contiguous));
  }

  /// Gathers a view into one of the buffers.
  std::byte* get(std::size_t buffer) {
    if (buffers_.empty()) return static_cast<std::byte*>(tensor_.data_ptr());
    buffers_[buffer].copy_(tensor_);
    return static_cast<std::byte*>(buffers_[buffer].data_ptr());
  }

 private:
  const at::Tensor tensor_;
  std::vector<at::Tensor> buffers_;
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
        dense_(tensor, together_),
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
  /// Sends if the window has room, and receives. Replies are small, or arrive before the next
  /// message is sent.
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

  /// Sends on a separate thread.
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
        stream_.end();  // ends the other thread too
      }
    });
    try {
      bool over = false;
      std::size_t left =
          window_;  // messages left when time is over, including those still to be sent
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
      const std::exception_ptr own = std::current_exception();
      const bool by_sender = failure_of_other(own);
      room.end();
      stream_.end();
      sender.join();
      std::rethrow_exception(by_sender && failure ? failure : own);
    }
    outcome.seconds = time.passed();
    return outcome;
  }

  /// Whether the error only says that the other thread has ended the stream.
  static bool failure_of_other(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const EndOfStream&) {
      return true;
    } catch (...) {
      return false;
    }
  }

  void send(std::size_t count, Clock::time_point now) {
    headers_.resize(count, {.bytes = which_.bytes, .number = 0});
    parts_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      headers_[i].number = number_++;
      parts_.push_back({.iov_base = &headers_[i], .iov_len = sizeof(FloorHeader)});
      parts_.push_back({.iov_base = dense_.get(i), .iov_len = which_.bytes});
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
  std::vector<FloorHeader> headers_;  // used by the sending thread
  std::vector<iovec> parts_;
  std::mutex mutex_;
  std::deque<Clock::time_point> sent_;  // of messages in flight; replies come in order
};

class MemoryFloor final : public Client {
 public:
  MemoryFloor(const Case& which, const at::Tensor& tensor, Check check)
      : which_(which), check_(std::move(check)), dense_(tensor, 1), there_(which.bytes) {
    if (which.mode == Mode::echo) back_.resize(which.bytes);
  }

  Outcome run(double seconds) override {
    const RunTime time(seconds);
    Outcome outcome;
    for (Clock::time_point now = time.begin();;) {
      const std::byte* const bytes = dense_.get(0);
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
