#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/ref.hpp"
#include "batchrpc/base/result.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/future/state.hpp"

namespace batchrpc {

/// A bounded queue that blocks no thread: push() waits for room by a future, and pop() for an item.
/// Use it for back-pressure. A handler that waits for room holds back its caller's reply, so that
/// callers are no faster than who takes the items:
///
///     batchrpc::AsyncQueue<Sample> samples(1024);
///     batchrpc::Future<void> add(Sample sample) { return samples.push(std::move(sample)); }
///     Sample next = samples.pop().get();  // the learner
///
/// Items leave in the order in which they came; those that wait for room follow in the order of the
/// calls of push(). Thread-safe; callbacks run without the queue's lock. T must be movable without
/// an exception.
template <class T>
class AsyncQueue {
 public:
  /// `capacity`: the most items in the queue, those that wait for room not counted. Throws
  /// InvalidArgument for 0.
  explicit AsyncQueue(std::size_t capacity) : capacity_(capacity) {
    if (capacity == 0) throw InvalidArgument("AsyncQueue: the capacity must be at least 1");
  }
  /// Closes the queue. Its items are lost.
  ~AsyncQueue() { close(); }
  AsyncQueue(const AsyncQueue&) = delete;
  AsyncQueue& operator=(const AsyncQueue&) = delete;

  /// Adds an item. The future is ready when the item is in the queue; at once if there is room. It
  /// fails with ShutDown if the queue is closed before that. Dropping the future changes nothing.
  Future<void> push(T item) {
    std::unique_lock lock(mutex_);
    if (closed_) return make_failed_future<void>(closed_error());
    if (Taker taker = next_taker()) {
      lock.unlock();
      give(std::move(taker), std::move(item));
      return make_ready_future();
    }
    if (items_.size() < capacity_) {
      items_.push_back(std::move(item));
      return make_ready_future();
    }
    waiting_.push_back({std::move(item), {}});
    return waiting_.back().in.get_future();
  }

  /// Adds an item if there is room. Returns false if there is none, or the queue is closed; the
  /// item is then as it was.
  [[nodiscard]] bool try_push(T&& item) {
    std::unique_lock lock(mutex_);
    if (closed_ || items_.size() >= capacity_) return false;
    if (Taker taker = next_taker()) {
      lock.unlock();
      give(std::move(taker), std::move(item));
    } else {
      items_.push_back(std::move(item));
    }
    return true;
  }

  /// Takes the oldest item. The future is ready when there is one. It fails with ShutDown when the
  /// queue is closed and empty. A future that is dropped while it waits takes no item. One that is
  /// ready has its item, which goes with it.
  [[nodiscard]] Future<T> pop() {
    std::unique_lock lock(mutex_);
    if (items_.empty()) {
      if (closed_) return make_failed_future<T>(closed_error());
      Taker taker(new detail::State<T>(1));
      takers_.push_back(taker);
      return detail::FutureAccess::make(std::move(taker));
    }
    std::optional<Promise<void>> admitted;
    T item = take(admitted);
    lock.unlock();
    if (admitted) admitted->set_value();
    return make_ready_future(std::move(item));
  }

  /// Takes the oldest item if there is one.
  [[nodiscard]] std::optional<T> try_pop() {
    std::unique_lock lock(mutex_);
    if (items_.empty()) return std::nullopt;
    std::optional<Promise<void>> admitted;
    std::optional<T> item(take(admitted));
    lock.unlock();
    if (admitted) admitted->set_value();
    return item;
  }

  /// Refuses further items. Those that wait for room fail with ShutDown; those in the queue can
  /// still be taken. Idempotent.
  void close() {
    std::deque<Taker> takers;
    std::deque<Waiting> waiting;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      takers.swap(takers_);
      waiting.swap(waiting_);
    }
    for (Taker& taker : takers)
      give(std::move(taker), closed_error());
    for (Waiting& each : waiting)
      each.in.set_error(closed_error());
  }

  /// The items in the queue, those that wait for room not counted.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  /// The most items that it holds.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "the items of an AsyncQueue must be movable without an exception");
  using Taker = detail::Ref<detail::State<T>>;  // the state of a future of pop()
  struct Waiting {
    T item;
    Promise<void> in;
  };

  // Removes and returns the taker that is next; null if none waits. Those whose futures were
  // dropped are left out. The caller must hold the lock.
  Taker next_taker() noexcept {
    while (!takers_.empty()) {
      Taker taker = std::move(takers_.front());
      takers_.pop_front();
      if (!taker->holds_all(1)) return taker;
    }
    return {};
  }
  static void give(Taker taker, Result<T> item) noexcept {
    taker->store(std::move(item));
    taker.release()->complete();
  }
  static std::exception_ptr closed_error() {
    return std::make_exception_ptr(ShutDown("the AsyncQueue is closed"));
  }
  // Takes the oldest item, and admits the next that waits. The caller must hold the lock, and
  // completes `admitted` without it.
  T take(std::optional<Promise<void>>& admitted) {
    T item = std::move(items_.front());
    items_.pop_front();
    if (!waiting_.empty()) {
      items_.push_back(std::move(waiting_.front().item));
      admitted = std::move(waiting_.front().in);
      waiting_.pop_front();
    }
    return item;
  }

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::deque<T> items_;
  std::deque<Waiting> waiting_;  // for room; only while there is none
  std::deque<Taker> takers_;     // only while there is no item
  bool closed_ = false;
};

}  // namespace batchrpc
