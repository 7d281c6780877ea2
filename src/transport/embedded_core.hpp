#pragma once

#include <asio/io_context.hpp>
#include <atomic>
#include <memory>
#include <utility>

#include "base/task_queue.hpp"
#include "transport/guest.hpp"
#include "transport/loop_core.hpp"

namespace batchrpc::detail {

/// A loop on the io_context of the program that embeds it; driven by the threads that run that
/// context, in turns.
class EmbeddedCore final : public LoopCore {
 public:
  explicit EmbeddedCore(asio::io_context& io);

  /// Waits for tasks that other threads run, for a second at most.
  void stop() override;
  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override;
  void post(Task task) override;
  TimerId schedule(TimePoint when, Task task) override {
    return timers().schedule(when, std::move(task));
  }
  [[nodiscard]] bool is_driving() const noexcept override { return guest_->presence().here() > 0; }
  /// Only on a thread that runs the context: others must not.
  bool poll() override;

 private:
  EmbeddedCore(asio::io_context& io, const std::shared_ptr<Guest>& guest);

  asio::io_context& io_;
  const std::shared_ptr<Guest> guest_;
  TaskQueue posted_;

  // Whether a thread was seen to run the context while another waited in it, lately.
  const std::shared_ptr<std::atomic<bool>> has_other_threads_ =
      std::make_shared<std::atomic<bool>>(false);
};

}  // namespace batchrpc::detail
