#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "batchrpc/base/export.hpp"
#include "batchrpc/transport/virtual_loop.hpp"

namespace batchrpc {

/// How a host's clock differs from the world's.
struct ClockOptions {
  Duration offset{};  ///< how far it is ahead of the world's; at most an hour behind
  double drift = 0;   ///< how many seconds it gains each second: 1e-4 gains 8.6 s a day
};

/// One host's view of a VirtualLoop that several hosts share. It has its own clock and can be
/// paused. It is the loop of that host's nodes. A wait on it drives the VirtualLoop, and so all
/// hosts. The rules for threads are those of VirtualLoop.
class BATCHRPC_EXPORT VirtualHost final : public Loop,
                                          public std::enable_shared_from_this<VirtualHost> {
 public:
  /// Throws InvalidArgument if `drift` is not between -0.5 and 0.5, or `offset` is too far back.
  [[nodiscard]] static std::shared_ptr<VirtualHost> make(std::shared_ptr<VirtualLoop> loop,
                                                         const ClockOptions& clock = {});
  ~VirtualHost() override;
  VirtualHost(const VirtualHost&) = delete;
  VirtualHost& operator=(const VirtualHost&) = delete;

  /// Stops the host's tasks from now on, as if its process had got SIGSTOP. Connections stay, due
  /// tasks wait for resume(), and the clock continues.
  void pause() noexcept { paused_ = true; }
  /// Continues; the tasks that became due run in order.
  void resume();
  /// Destroys the tasks that were held back.
  void drop_tasks() noexcept;
  /// Whether it is paused.
  [[nodiscard]] bool paused() const noexcept { return paused_; }

  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override;
  /// Returns the time by the host's clock.
  [[nodiscard]] TimePoint now() const noexcept override { return at_host(loop_->now()); }
  void post(Task task) override;
  TimerId schedule(TimePoint when, Task task) override;
  bool cancel(TimerId timer) override;
  [[nodiscard]] bool is_driving() const noexcept override { return loop_->is_driving(); }
  bool poll() override { return loop_->poll(); }

 private:
  friend class detail::ProgramThread;
  class Run;

  VirtualHost(std::shared_ptr<VirtualLoop> loop, const ClockOptions& clock);
  [[nodiscard]] TimePoint at_host(TimePoint at_loop) const noexcept;
  [[nodiscard]] TimePoint at_loop(TimePoint at_host) const noexcept;  // not before it
  TimerId schedule_at_loop(TimePoint when, Task task);
  void run(Task task);
  void run_held_back();

  const std::shared_ptr<VirtualLoop> loop_;
  const TimePoint start_;
  const ClockOptions clock_;
  bool paused_ = false;
  std::deque<std::pair<TimerId, Task>> held_back_;  // due, but not yet run
};

}  // namespace batchrpc
