#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "batchrpc/transport/loop.hpp"
#include "transport/alarm_clock.hpp"

namespace batchrpc::detail {

/// Who may drive a loop, now: the I/O thread, one of the waiting threads, or nobody for the time of
/// a lease. Knows nothing of Asio.
///
/// The drive goes from hand to hand; whoever lets it go decides who has it next: the waiting thread
/// that came first, else nobody, with a lease for the one that lets go. The I/O thread takes it
/// only when nobody has it and no lease is on. While others have it, it sleeps on a timer
/// descriptor, so that those who start a lease can set its alarm clock without waking it.
class LoopOwnership {
 public:
  /// `wake_driver` makes whoever is in the reactor leave it and look at must_yield().
  LoopOwnership(Duration lease, void (*wake_driver)(void*) noexcept, void* argument);
  LoopOwnership(const LoopOwnership&) = delete;
  LoopOwnership& operator=(const LoopOwnership&) = delete;

  // For waiting threads:

  /// Returns true when the calling thread has the drive, false when `waiter` is ready or the
  /// deadline has passed, or the drive was stopped, without it. `io_thread`: by the I/O thread,
  /// within a task.
  bool acquire(Waiter& waiter, const std::optional<TimePoint>& deadline, bool io_thread = false);

  /// For a thread that has let the drive go within a task and must have it to go on with that task:
  /// has whoever drives yield. False when stopped.
  bool resume(bool io_thread);

  /// The drive if nobody has it.
  bool try_acquire();

  /// Lets it go, with a lease. `work_left` says whether other threads left work that should not
  /// wait for the lease's end; it is called when a look from another thread no longer finds a
  /// driver.
  void release(bool (*work_left)(void*) noexcept, void* argument);

  /// Lets it go without a lease.
  void release_at_once();

  /// Whether the calling thread drives, or was the last to do so: what it leaves undone it will
  /// most likely come back to.
  [[nodiscard]] bool is_favoured() const noexcept;

  /// Whether the driver should hand the drive on at the next occasion: another thread needs it, or
  /// the I/O thread has it and any other wants it, or all is to stop.
  [[nodiscard]] bool must_yield() const noexcept { return yield_.load(); }

  // For the I/O thread:

  /// Sleeps until the drive is due to the I/O thread; false when stopped.
  bool acquire_for_io();
  void release_by_io();

  // For anybody:

  /// When there is work that is due at `when`: ends a lease that would delay it.
  void want_driver(TimePoint when);

  /// Nobody gets the drive from now on; returns when nobody has it (at once on the thread that
  /// `driven_here`).
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
  // The caller must hold the mutex:
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
