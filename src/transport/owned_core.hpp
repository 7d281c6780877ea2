#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/transport/socket_loop.hpp"
#include "transport/loop_core.hpp"
#include "transport/loop_ownership.hpp"
#include "transport/post_queue.hpp"
#include "transport/spin_gate.hpp"

namespace batchrpc::detail {

/// A loop with an I/O thread: the drive goes between that thread and those that wait.
class OwnedCore final : public LoopCore {
 public:
  explicit OwnedCore(const SocketLoopOptions& options);
  /// Begins the I/O thread; apart from the constructor, for the thread shares the core.
  void start();

  void stop() override;
  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override;
  void post(Task task) override;
  void defer(Task task) override;
  TimerId schedule(TimePoint when, Task task) override;
  [[nodiscard]] bool is_driving() const noexcept override;
  bool poll() override;

 private:
  class Frame;

  void wait_driving(Frame& frame, Waiter& waiter, const std::optional<TimePoint>& deadline);
  void wait_outside(Waiter& waiter, const std::optional<TimePoint>& deadline);
  void drive_until(Frame& frame, Waiter& waiter, const std::optional<TimePoint>& deadline);
  bool run_first(PostQueue& queue);
  bool run_event();
  bool look(bool may_sleep);
  void turn();
  bool spin();
  void run_io_thread();
  void wake() noexcept;

  static void wake_unless_driving(void* core) noexcept;
  static bool has_foreign_work(void* core) noexcept;

  [[nodiscard]] Reactor& reactor() const noexcept { return site()->reactor(); }

  const SocketLoopOptions options_;
  PostQueue posted_;
  PostQueue deferred_;
  LoopOwnership drive_;
  std::atomic<bool> woken_{false};   // whoever drives is to come out of the reactor
  std::atomic<bool> asleep_{false};  // and is in there, for long
  std::atomic<bool> stopped_{false};

  // Only for whoever drives.
  std::array<epoll_event, 128> events_;
  std::size_t next_event_ = 0;
  std::size_t end_of_events_ = 0;
  SpinGate gate_;
  unsigned tasks_in_a_row_ = 0;

  std::thread thread_;
  Promise<void> end_of_io_thread_;
  Future<void> io_thread_ended_;
};

}  // namespace batchrpc::detail
