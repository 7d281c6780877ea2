#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "batchrpc/future/wait.hpp"

namespace batchrpc::test {

/// Waits in virtual time: what was scheduled runs, on the waiting thread, when the clock comes to
/// it.
class VirtualWait final : public WaitContext {
 public:
  void after(Duration delay, Task task) { tasks_.emplace(now_ + delay, std::move(task)); }

  /// Runs all that is scheduled.
  void run() {
    while (!tasks_.empty())
      run_next();
  }

  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override {
    ++waits;
    while (!waiter.ready()) {
      if (!tasks_.empty() && (!deadline || tasks_.begin()->first <= *deadline)) {
        run_next();
      } else if (deadline) {
        now_ = std::max(now_, *deadline);
        return;
      } else {
        throw std::logic_error("waiting for what never comes");
      }
    }
  }
  [[nodiscard]] TimePoint now() const noexcept override { return now_; }

  int waits = 0;

 private:
  void run_next() {
    auto node = tasks_.extract(tasks_.begin());
    now_ = std::max(now_, node.key());
    node.mapped()();
  }

  TimePoint now_{std::chrono::hours(1)};
  std::multimap<TimePoint, Task> tasks_;
};

}  // namespace batchrpc::test
