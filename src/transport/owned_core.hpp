#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <memory>
#include <thread>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/transport/asio_loop.hpp"
#include "transport/asio_core.hpp"
#include "transport/drive.hpp"
#include "transport/post_queue.hpp"
#include "transport/spin_gate.hpp"

namespace batchrpc::detail {

/// A loop with an I/O thread: the drive goes between that thread and those that wait.
class OwnedCore final : public AsioCore {
 public:
  explicit OwnedCore(const AsioLoopOptions& options);
  /// Begins the I/O thread; apart from the constructor, for the thread shares the core.
  void start();

  [[nodiscard]] asio::io_context& io() noexcept override { return io_; }
  [[nodiscard]] AsioTimers& timers() noexcept override { return *timers_; }
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
  bool run_posted();
  void turn(bool may_spin);
  bool spin();
  void run_io_thread();
  void wake() noexcept;

  static void wake_unless_driving(void* core) noexcept;
  static bool has_foreign_work(void* core) noexcept;

  const AsioLoopOptions options_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::shared_ptr<AsioTimers> timers_;
  PostQueue posted_;
  PostQueue deferred_;  // for each, there is something in io_ that takes it out
  Drive drive_;
  std::atomic<bool> wake_posted_{false};
  std::atomic<bool> stopped_{false};

  // Only for whoever drives.
  SpinGate gate_;
  unsigned posted_in_a_row_ = 0;

  std::thread thread_;
  Promise<void> end_of_io_thread_;
  Future<void> io_thread_ended_;
};

}  // namespace batchrpc::detail
