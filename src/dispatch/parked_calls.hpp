#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/transport/loop.hpp"
#include "call/drop_hook.hpp"
#include "call/function_table.hpp"
#include "call/incoming_call.hpp"

namespace batchrpc {

/// Keeps calls that came before their function was exposed. Nodes that start together call each
/// other before all of them have exposed their functions. A call that is cancelled leaves at once.
/// Thread-safe.
class ParkedCalls : public std::enable_shared_from_this<ParkedCalls> {
 public:
  /// Looks up the function again, and runs the call or fails it.
  using RunAgain = std::function<void(detail::WaitingCall)>;

  /// `functions` must outlive this. `runner` runs the calls.
  ParkedCalls(std::shared_ptr<Loop> loop, std::shared_ptr<Executor> runner,
              const FunctionTable& functions);

  /// Takes the call and returns true, unless the time for waiting is over or too many calls wait.
  bool park(const std::string& function, detail::WaitingCall& call, RunAgain again);
  /// Runs the calls that waited for `function`, which is in the table now.
  void exposed(std::string_view function);
  /// From `end` on, or from an earlier one, no call waits. Without this call, calls wait without
  /// limit.
  void expect_functions_until(TimePoint end);
  /// Fails the calls that wait. From now on none waits.
  void close(const std::exception_ptr& error);
  /// The number of calls that wait.
  [[nodiscard]] std::size_t size() const;

 private:
  static constexpr std::size_t kMost = 10'000;

  using Hook = DropHook<ParkedCalls, std::uint64_t>;
  friend Hook;
  // The numbers of the calls of each function.
  using Lines = std::map<std::string, std::set<std::uint64_t>, std::less<>>;
  struct Call {
    detail::WaitingCall call;
    RunAgain again;
    std::unique_ptr<Hook> hook;
    Lines::iterator line;
  };
  using Calls = std::map<std::uint64_t, Call>;

  void drop(std::uint64_t number);
  void run(Calls&& calls);
  void run_one(detail::WaitingCall call, RunAgain again);

  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<Executor> runner_;
  const FunctionTable& functions_;
  mutable std::mutex mutex_;
  Lines lines_;
  Calls calls_;  // by number, in their order
  std::uint64_t next_ = 0;
  TimePoint end_ = TimePoint::max();
  TimerId timer_ = 0;
};

}  // namespace batchrpc
