#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "batchrpc/base/export.hpp"
#include "batchrpc/transport/loop.hpp"

namespace asio {
class io_context;
}

namespace batchrpc {

namespace detail {
class LoopCore;
class TickCounter;
}  // namespace detail

/// How a loop with its own thread waits.
struct SocketLoopOptions {
  /// How long a driving thread polls before it sleeps in the kernel. If polling finds nothing, or
  /// other threads need the processor, it is suspended for longer and longer. Zero: never polls.
  Duration busy_poll = Duration::zero();

  /// How long the I/O thread leaves the drive to a thread after that thread has waited. Messages
  /// that arrive in this time, and tasks that the thread posts, may be delayed by as much.
  Duration lease = std::chrono::milliseconds(1);
};

/// A loop in real time, with sockets.
///
/// *With its own thread* (`start()`): the I/O thread drives while no thread waits. A thread that
/// waits takes over the drive until its wait is done. It then keeps a lease: for
/// `SocketLoopOptions::lease` the I/O thread stays parked, so repeated waits do not pay for a
/// hand-over. If several threads wait, one drives and the others sleep; it passes the drive on when
/// its own wait is done. Tasks that other threads post or schedule end a lease at once. Tasks that
/// the leaseholder posts wait for its next wait() or poll(), at most until the lease's end.
///
/// *On an `io_context` of Asio* (`embed()`): the threads that run the context drive. They take
/// turns, so that the loop's tasks run one at a time. A wait on such a thread runs the context,
/// nested, and lets others have their turn. On any other thread it sleeps.
///
/// A wait within a task of the loop continues to drive, nested, up to 256 deep. Beyond that it
/// leaves the driving to other threads and sleeps, or throws Overloaded if there can be no other.
class BATCHRPC_EXPORT SocketLoop final : public Loop {
 public:
  /// Makes a loop with an I/O thread, which ends with stop() or with the loop.
  [[nodiscard]] static std::shared_ptr<SocketLoop> start(const SocketLoopOptions& options = {});

  /// Makes a loop on `context`, which must outlive it and everything made on it.
  [[nodiscard]] static std::shared_ptr<SocketLoop> embed(asio::io_context& context);

  /// Does the same as stop().
  ~SocketLoop() override;

  /// Ends the driving: waits for the running task, ends the I/O thread, and destroys every task
  /// that has not run. From then on nothing of this loop runs, posted tasks are destroyed, and a
  /// wait() only sleeps. Idempotent. Called on a thread that drives the loop, it does not wait for
  /// that thread: the loop ends when the thread leaves it.
  void stop();

  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override;
  [[nodiscard]] TimePoint now() const noexcept override;
  [[nodiscard]] TimePoint coarse_now() const noexcept override;
  [[nodiscard]] Duration coarse_lag() const noexcept override;
  [[nodiscard]] std::uint64_t ticks() const noexcept override;
  [[nodiscard]] Duration time_of(std::uint64_t ticks) const noexcept override;
  [[nodiscard]] const detail::TickCounter* tick_counter() const noexcept override;
  void post(Task task) override;
  void defer(Task task) override;
  TimerId schedule(TimePoint when, Task task) override;
  bool cancel(TimerId timer) override;
  [[nodiscard]] bool is_driving() const noexcept override;
  bool poll() override;

 private:
  friend class TcpTransport;
  friend class UnixTransport;
  explicit SocketLoop(std::shared_ptr<detail::LoopCore> core);

  std::shared_ptr<detail::LoopCore> core_;
  const std::unique_ptr<detail::TickCounter> counter_;  // null if there is no good one
};

}  // namespace batchrpc
