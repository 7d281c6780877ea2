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

/// How a loop with a thread of its own waits.
struct SocketLoopOptions {
  /// How long a thread that drives polls before it goes to sleep in the kernel. Polling stops by
  /// itself, for longer and longer, while it finds nothing or while other threads need the
  /// processor. Zero: never.
  Duration busy_poll = Duration::zero();

  /// For how long, after a thread has waited, the I/O thread leaves the drive to it. Whatever comes
  /// in meanwhile, and what that thread posts, may be delayed by as much.
  Duration lease = std::chrono::milliseconds(1);
};

/// A loop in real time, with sockets.
///
/// *With a thread of its own* (`start()`): that I/O thread drives while nobody waits. A thread that
/// waits takes the drive over, drives until what it waits for is there, and then keeps a lease: for
/// `SocketLoopOptions::lease` the I/O thread stays parked, so that a caller that waits again and
/// again pays for no hand-over. Of several waiting threads one drives and the others sleep; it
/// hands the drive on when its own wait is over. Tasks that other threads post or schedule end a
/// lease at once; those that the leaseholder posts wait for its next wait() or poll(), at most
/// until the lease's end.
///
/// *On an `io_context` of Asio's* (`embed()`): whoever runs the context drives; several threads
/// take turns, so that the loop's tasks run one at a time. A wait on such a thread runs the
/// context, nested, and lets others have their turn; on any other thread it sleeps.
///
/// A wait from within a task of the loop drives on, nested, up to 256 deep; beyond that it leaves
/// the driving to others and sleeps, and throws Overloaded where there can be no other.
class BATCHRPC_EXPORT SocketLoop final : public Loop {
 public:
  /// A loop with an I/O thread, which ends with stop() or with the loop.
  [[nodiscard]] static std::shared_ptr<SocketLoop> start(const SocketLoopOptions& options = {});

  /// A loop on `context`, which outlives it and all that was made on it.
  [[nodiscard]] static std::shared_ptr<SocketLoop> embed(asio::io_context& context);

  /// As stop().
  ~SocketLoop() override;

  /// Ends the driving: waits for the task that runs now, ends the I/O thread, and destroys every
  /// task that has not run. From then on nothing of this loop runs any more, tasks posted are
  /// destroyed, and a wait() just sleeps. Idempotent. On a thread that drives the loop it does not
  /// wait for itself: the loop ends when that thread leaves it.
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
  const std::unique_ptr<detail::TickCounter> counter_;  // null: there is none that is good
};

}  // namespace batchrpc
