#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "batchrpc/base/export.hpp"
#include "batchrpc/transport/virtual_host.hpp"

namespace batchrpc::detail {

/// A program in virtual time that blocks. It has a thread, but runs only while the thread that
/// drives the loop waits for it: the two hand a turn to and fro. A wait of the program's gives the
/// turn back; what it waits for then has the loop run it again.
class BATCHRPC_EXPORT ProgramThread final : public std::enable_shared_from_this<ProgramThread> {
 public:
  /// `wake_delay` is how long the host takes to run it when it can go on. `host` lives as long as
  /// the program may run.
  ProgramThread(std::shared_ptr<VirtualLoop> loop, std::weak_ptr<VirtualHost> host,
                std::function<Duration()> wake_delay, std::function<void()> program);
  /// Only of one that has ended, or not begun.
  ~ProgramThread();
  ProgramThread(const ProgramThread&) = delete;
  ProgramThread& operator=(const ProgramThread&) = delete;

  /// Has the loop run it soon.
  void wake() noexcept;

  /// By the thread that drives the loop: ends the program, whose waits throw ProgramEnded.
  void end();

  [[nodiscard]] bool has_ended() const noexcept { return ended_; }

  /// By the program, instead of the loop's.
  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline);

 private:
  void run();        // on the loop: until it waits or ends; throws what the program has thrown
  void give_turn();  // to the program, and takes it back
  void give_back();
  void await_turn();
  void work();

  const std::shared_ptr<VirtualLoop> loop_;
  const std::weak_ptr<VirtualHost> host_;
  const std::function<Duration()> wake_delay_;
  std::function<void()> program_;

  // Whoever has the turn touches these.
  bool ended_ = false;
  bool ending_ = false;
  std::exception_ptr thrown_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable turned_;
  bool turn_ = false;  // it is the program's
  std::thread thread_;
};

}  // namespace batchrpc::detail
