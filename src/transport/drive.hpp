#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "batchrpc/transport/loop.hpp"

namespace batchrpc::detail {

/// Who may drive a loop, now: the I/O thread, one of the waiting threads, or nobody for the time of
/// a lease. Knows nothing of Asio.
///
/// The drive goes from hand to hand; whoever lets it go decides who has it next: the waiting thread
/// that came first, else nobody, with a lease for the one that lets go. The I/O thread takes it
/// only when nobody has it and no lease is on. While others have it, it sleeps on a timer
/// descriptor, so that those who start a lease can set its alarm clock without waking it.
class Drive {
 public:
  /// `wake_driver` makes whoever is in the reactor leave it and look at `io_must_yield()`.
  Drive(Duration lease, void (*wake_driver)(void*) noexcept, void* argument);
  ~Drive();
  Drive(const Drive&) = delete;
  Drive& operator=(const Drive&) = delete;

  // A waiting thread
  // ---------------------------------------------------------------------------------------------------

  /// Returns true when the calling thread has the drive, false when `waiter` is ready or the
  /// deadline has passed, or the drive was stopped, without it.
  bool acquire(Waiter& waiter, const std::optional<TimePoint>& deadline);

  /// The drive if nobody has it.
  bool try_acquire();

  /// `work_left` says whether other threads left work that should not wait for the lease's end; it
  /// is called when a look from another thread no longer finds a driver.
  void release(bool (*work_left)(void*) noexcept, void* argument);

  /// Lets go of the drive without a lease.
  void release_at_once();

  /// Whether the calling thread drives, or was the last to do so: what it leaves undone it will
  /// most likely come back to.
  [[nodiscard]] bool is_favoured() const noexcept;

  // The I/O thread
  // -----------------------------------------------------------------------------------------------------

  /// Sleeps until the drive is due to the I/O thread; false when stopped.
  bool acquire_for_io();
  void release_by_io();
  /// Whether a waiting thread wants the drive, or all is to stop.
  [[nodiscard]] bool io_must_yield() const noexcept { return io_yield_.load(); }

  // Anybody
  // ------------------------------------------------------------------------------------------------------------

  /// When there is work that is due at `when`: ends a lease that would delay it.
  void want_driver(TimePoint when);

  /// Nobody gets the drive from now on; returns when nobody has it (at once on the thread that
  /// `driven_here`).
  void stop(bool driven_here);
  [[nodiscard]] bool stopped() const noexcept { return stopped_.load(); }

 private:
  struct Follower {
    Waiter* waiter;
    bool offered = false;
  };
  enum class Holder : unsigned char { nobody, io_thread, waiting_thread, offered };

  void take();
  void pass_on();
  void end_lease();
  void set_alarm(TimePoint when) noexcept;

  const Duration lease_;
  void (*const wake_driver_)(void*) noexcept;
  void* const wake_argument_;
  const int alarm_;  // a timerfd; the I/O thread sleeps reading it

  mutable std::mutex mutex_;
  std::condition_variable stopped_changed_;
  Holder holder_ = Holder::nobody;
  std::deque<Follower*> followers_;
  TimePoint lease_until_{};
  TimePoint alarm_at_ = TimePoint::max();
  std::atomic<const void*> favoured_{nullptr};
  std::atomic<bool> driven_{false};
  std::atomic<bool> io_yield_{false};
  std::atomic<bool> stopped_{false};
};

}  // namespace batchrpc::detail
