#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "batchrpc/transport/loop.hpp"
#include "transport/alarm_clock.hpp"

namespace batchrpc::detail {

/// Decides which thread may drive a loop now: the I/O thread, one of the waiting threads, or none
/// while a lease lasts. It does not depend on Asio.
///
/// The thread that releases the drive passes it to the waiting thread that came first. If none
/// waits, no thread has the drive, and the releasing thread has a lease. The I/O thread takes the
/// drive only if no thread has it and no lease is active. Otherwise it sleeps on a timer
/// descriptor, so that a thread that starts a lease can set its alarm without waking it.
class LoopOwnership {
 public:
  /// `wake_driver` makes the thread in the reactor leave it and check must_yield().
  LoopOwnership(Duration lease, void (*wake_driver)(void*) noexcept, void* argument);
  LoopOwnership(const LoopOwnership&) = delete;
  LoopOwnership& operator=(const LoopOwnership&) = delete;

  // For waiting threads:

  /// Returns true if the calling thread has the drive. Returns false, without the drive, if
  /// `waiter` is ready, the deadline has passed, or the loop was stopped. `io_thread`: the caller
  /// is the I/O thread, within a task.
  bool acquire(Waiter& waiter, const std::optional<TimePoint>& deadline, bool io_thread = false);

  /// For a thread that has released the drive within a task and needs it to continue that task:
  /// makes the present driver yield. Returns false if stopped.
  bool resume(bool io_thread);

  /// Takes the drive if no thread has it.
  bool try_acquire();

  /// Releases the drive, with a lease. `work_left` returns whether other threads left work that
  /// must not wait for the lease's end. It is called at a point from which other threads no longer
  /// find a driver.
  void release(bool (*work_left)(void*) noexcept, void* argument);

  /// Releases the drive without a lease.
  void release_at_once();

  /// Returns whether the calling thread drives, or was the last to drive: it will most likely
  /// return to the work that it leaves undone.
  [[nodiscard]] bool is_favoured() const noexcept;

  /// Returns whether the driver should pass on the drive at the next opportunity: because another
  /// thread needs it, because the I/O thread has it and any other thread wants it, or because the
  /// loop stops.
  [[nodiscard]] bool must_yield() const noexcept { return yield_.load(); }

  // For the I/O thread:

  /// Sleeps until the I/O thread should drive. Returns false if stopped.
  bool acquire_for_io();
  void release_by_io();

  // For any thread:

  /// Reports work that is due at `when`: ends a lease that would delay it.
  void want_driver(TimePoint when);

  /// Gives no thread the drive from now on, and returns when no thread has it (at once on the
  /// thread that `driven_here`).
  void stop(bool driven_here);
  [[nodiscard]] bool stopped() const noexcept { return stopped_.load(); }

 private:
  struct Follower {
    Waiter* waiter;
    bool urgent;
    bool offered = false;
  };
  enum class Holder : unsigned char { nobody, io_thread, waiting_thread, offered };

  // Waits in line, without the lock, which it takes over.
  bool follow(std::unique_lock<std::mutex> lock, Follower self,
              const std::optional<TimePoint>& deadline, bool io_thread);
  // The caller of these must hold the mutex:
  void take(bool io_thread);
  void pass_on();
  [[nodiscard]] bool has_urgent() const noexcept;
  void ask_to_yield();
  void end_lease();
  void set_alarm(TimePoint when) noexcept;

  const Duration lease_;
  void (*const wake_driver_)(void*) noexcept;
  void* const wake_argument_;
  const AlarmClock alarm_;  // the I/O thread sleeps reading it

  mutable std::mutex mutex_;
  std::condition_variable stopped_changed_;
  Holder holder_ = Holder::nobody;
  std::deque<Follower*> followers_;
  TimePoint lease_until_{};
  TimePoint alarm_at_ = TimePoint::max();
  std::atomic<const void*> favoured_{nullptr};
  std::atomic<bool> driven_{false};
  std::atomic<bool> yield_{false};
  std::atomic<bool> stopped_{false};
};

}  // namespace batchrpc::detail
