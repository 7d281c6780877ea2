#pragma once

#include <memory>
#include <utility>

#include "batchrpc/base/function.hpp"
#include "transport/reactor.hpp"

namespace batchrpc::detail {

/// Where the sockets and the alarm of a loop are waited for, and where that runs what they set off.
/// Thread-safe.
class Site {
 public:
  explicit Site(std::shared_ptr<Reactor> reactor) : reactor_(std::move(reactor)) {}
  virtual ~Site() = default;
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  [[nodiscard]] Reactor& reactor() const noexcept { return *reactor_; }

  /// Runs `task` as one of the loop's, or has it run soon. Called by whoever dispatches an event.
  virtual void run(Task task) = 0;

  /// Called when there is something to wait for, a socket or an alarm, and when there is no longer.
  virtual void hold() = 0;
  virtual void release() = 0;

 private:
  const std::shared_ptr<Reactor> reactor_;
};

}  // namespace batchrpc::detail
