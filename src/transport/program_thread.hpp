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

/// A blocking program in virtual time. It has a thread, but runs only while the thread that drives
/// the loop waits for it: the two threads take turns. A wait of the program returns the turn. When
/// the wait is done, the loop runs the program again.
class BATCHRPC_EXPORT ProgramThread final : public std::enable_shared_from_this<ProgramThread> {
 public:
  /// `wake_delay` is how long the host takes to run the program once it can continue. `host` must
  /// outlive the program.
  ProgramThread(std::shared_ptr<VirtualLoop> loop, std::weak_ptr<VirtualHost> host,
                std::function<Duration()> wake_delay, std::function<void()> program);
  /// The program must have ended, or must not have started.
  ~ProgramThread();
  ProgramThread(const ProgramThread&) = delete;
  ProgramThread& operator=(const ProgramThread&) = delete;

  /// Makes the loop run it soon.
  void wake() noexcept;

  /// Called by the thread that drives the loop. Ends the program; its waits throw ProgramEnded.
  void end();

  [[nodiscard]] bool has_ended() const noexcept { return ended_; }

  /// Used by the program in place of the loop's wait.
  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline);

 private:
  void run();  // called on the loop: runs the program until it waits or ends; throws its exception
  void give_turn();  // gives the turn to the program, and returns when it comes back
  void give_back();
  void await_turn();
  void work();

  const std::shared_ptr<VirtualLoop> loop_;
  const std::weak_ptr<VirtualHost> host_;
  const std::function<Duration()> wake_delay_;
  std::function<void()> program_;

  // Only the thread that has the turn uses these.
  bool ended_ = false;
  bool ending_ = false;
  std::exception_ptr thrown_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable turned_;
  bool turn_ = false;  // true: it is the program's turn
  std::thread thread_;
};

}  // namespace batchrpc::detail
