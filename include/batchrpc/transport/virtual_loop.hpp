#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>

#include "batchrpc/base/export.hpp"
#include "batchrpc/transport/loop.hpp"

namespace batchrpc {

namespace detail {
class ProgramThread;
}

/// Thrown by a wait over a VirtualLoop when nothing is left that could ever end it.
class BATCHRPC_EXPORT VirtualDeadlock final : public std::logic_error {
 public:
  using std::logic_error::logic_error;
  ~VirtualDeadlock() override;
};

/// Thrown by the waits of a program of a SimulatedWorld that is to end: its host was killed, or the
/// world is gone. Let it pass: it is no std::exception, and what waits on in spite of it gets it
/// again.
struct BATCHRPC_EXPORT ProgramEnded {};

/// A loop in virtual time, for tests. Time stands still while tasks run, and jumps to the next
/// task's time when none is due: an hour of time-outs passes in no time, and every run is the same.
/// Tasks run ordered by their time, those of the same time in the order in which they came.
///
/// Runs on the thread that calls run_until_idle(), run_until(), run_for(), poll() or wait(). It may
/// be handed from thread to thread as long as one at a time uses it. Programs that block have
/// threads of their own: see SimulatedWorld.
class BATCHRPC_EXPORT VirtualLoop final : public Loop {
 public:
  /// `seed` is that of random(), and nothing else.
  explicit VirtualLoop(std::uint64_t seed = 0);
  /// Destroys the tasks that have not run.
  ~VirtualLoop() override;
  VirtualLoop(const VirtualLoop&) = delete;
  VirtualLoop& operator=(const VirtualLoop&) = delete;

  /// Runs until no task is left, or until `at_most` of virtual time has passed (a node's pings
  /// never end). Returns whether none is left.
  bool run_until_idle(Duration at_most = std::chrono::hours(1));

  /// Runs until `done` is true, which is asked between two tasks; returns that. False: nothing is
  /// left to happen, or `at_most` of virtual time has passed.
  bool run_until(const std::function<bool()>& done, Duration at_most = std::chrono::hours(1));

  /// Runs what is due in the next `duration`, and leaves the clock at its end. A program with a
  /// thread of its own waits for so long.
  void run_for(Duration duration);

  /// Moves the clock without running anything, as if the program had been computing: what has
  /// become due is late.
  void advance(Duration duration);

  /// Runs tasks, nested in the one that waits, until `waiter` is ready or the clock is at
  /// `deadline`. Throws VirtualDeadlock when there is no deadline and no task left, or a day has
  /// passed. Nests up to 256 deep, then throws Overloaded.
  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override;

  /// Begins an hour after the clock's epoch.
  [[nodiscard]] TimePoint now() const noexcept override { return now_; }
  void post(Task task) override;
  TimerId schedule(TimePoint when, Task task) override;
  bool cancel(TimerId timer) override;
  [[nodiscard]] bool is_driving() const noexcept override {
    return running_ > 0 && program_ == nullptr;
  }

  /// Runs what is due now.
  bool poll() override;

  /// Destroys the tasks that have not run, as the destructor does: where what they keep alive keeps
  /// the loop alive.
  void drop_tasks() noexcept;

  /// For whatever is random in a test.
  [[nodiscard]] std::mt19937_64& random() noexcept { return random_; }

  /// How many tasks wait for their time.
  [[nodiscard]] std::size_t pending() const noexcept;

 private:
  friend class VirtualHost;
  friend class detail::ProgramThread;
  struct Tasks;

  bool run_next(TimePoint until);
  void check_may_drive() const;

  const std::unique_ptr<Tasks> tasks_;
  TimePoint now_{std::chrono::hours(1)};
  int running_ = 0;
  int waits_ = 0;
  TimerId current_ = 0;                       // of the task begun last
  detail::ProgramThread* program_ = nullptr;  // which runs now, on its thread
  std::mt19937_64 random_;
};

}  // namespace batchrpc
