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

/// Thrown by a wait on a VirtualLoop that no remaining task can end.
class BATCHRPC_EXPORT VirtualDeadlock final : public std::logic_error {
 public:
  using std::logic_error::logic_error;
  ~VirtualDeadlock() override;
};

/// Thrown by the waits of a SimulatedWorld's program that must end, because its host was killed or
/// the world was destroyed. Let it pass. It is not a std::exception; a program that catches it and
/// waits again gets it again.
struct BATCHRPC_EXPORT ProgramEnded {};

/// A loop in virtual time, for tests. Time stands still while tasks run. If no task is due, it
/// jumps to the time of the next task, so an hour of timeouts passes at once, and every run is the
/// same. Tasks run in order of their time; tasks of the same time run in the order in which they
/// were added.
///
/// The loop runs on the thread that calls run_until_idle(), run_until(), run_for(), poll() or
/// wait(). Different threads may use it, but only one at a time. Programs that block have threads
/// of their own: see SimulatedWorld.
class BATCHRPC_EXPORT VirtualLoop final : public Loop {
 public:
  /// `seed` is the seed of random(), and of nothing else.
  explicit VirtualLoop(std::uint64_t seed = 0);
  /// Destroys the tasks that have not run.
  ~VirtualLoop() override;
  VirtualLoop(const VirtualLoop&) = delete;
  VirtualLoop& operator=(const VirtualLoop&) = delete;

  /// Runs until no task is left, or until `at_most` of virtual time has passed (a node's pings
  /// never end). Returns whether no task is left.
  bool run_until_idle(Duration at_most = std::chrono::hours(1));

  /// Runs until `done` returns true; it is called between tasks. Returns false if no task is left,
  /// or if `at_most` of virtual time has passed.
  bool run_until(const std::function<bool()>& done, Duration at_most = std::chrono::hours(1));

  /// Runs the tasks of the next `duration`, and leaves the clock at its end. A program with its own
  /// thread waits for that time.
  void run_for(Duration duration);

  /// Moves the clock without running anything, as if the program had been computing. Tasks that
  /// became due are late.
  void advance(Duration duration);

  /// Runs tasks, nested in the waiting task, until `waiter` is ready or the clock is at `deadline`.
  /// Throws VirtualDeadlock if there is no deadline, and no task is left or a day has passed. Waits
  /// nest up to 256 deep; beyond that it throws Overloaded.
  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override;

  /// Begins an hour after the clock's epoch.
  [[nodiscard]] TimePoint now() const noexcept override { return now_; }
  void post(Task task) override;
  TimerId schedule(TimePoint when, Task task) override;
  bool cancel(TimerId timer) override;
  [[nodiscard]] bool is_driving() const noexcept override {
    return running_ > 0 && program_ == nullptr;
  }

  /// Runs the tasks that are due now.
  bool poll() override;

  /// Destroys the tasks that have not run, as the destructor does. Use it if objects that the tasks
  /// keep alive keep the loop alive.
  void drop_tasks() noexcept;

  /// A generator for the random choices of a test.
  [[nodiscard]] std::mt19937_64& random() noexcept { return random_; }

  /// Returns the number of tasks that wait for their time.
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
  TimerId current_ = 0;                       // the task begun last
  detail::ProgramThread* program_ = nullptr;  // the program that runs now, on its own thread
  std::mt19937_64 random_;
};

}  // namespace batchrpc
