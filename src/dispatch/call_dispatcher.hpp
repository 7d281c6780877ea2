#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "batchrpc/base/log.hpp"
#include "batchrpc/call/node_options.hpp"
#include "call/function_table.hpp"
#include "dispatch/admission_queue.hpp"
#include "dispatch/exclusive_calls.hpp"
#include "dispatch/parked_calls.hpp"
#include "metrics/node_counters.hpp"
#include "session/call_sink.hpp"
#include "session/log_limits.hpp"

namespace batchrpc {

/// Looks up the function of an incoming call and decides where and when it runs: at once, on a
/// worker, when it is its turn, or when the function is exposed. Thread-safe.
class CallDispatcher final : public CallSink {
 public:
  /// The parts of the node that it uses. They must outlive it.
  struct Environment {
    std::string node;  ///< the node's name, for messages
    const FunctionTable& functions;
    std::shared_ptr<Loop> loop;
    std::shared_ptr<Executor> loop_tasks;
    std::shared_ptr<Executor> workers;
    CallLimits limits;
    Log log;
    LogLimits& log_limits;
    NodeCounters& counters;
    /// Returns the error by which calls of the program's functions are refused; null: they may run.
    std::function<std::exception_ptr()> refusal;
  };

  explicit CallDispatcher(Environment environment);

  [[nodiscard]] CalledFunction define(std::string name, std::string signature) override;
  void take(CalledFunction& called, detail::ArrivedCall&& call,
            const CallArrival& arrival) override;
  [[nodiscard]] detail::ReceivePlan announce(
      CalledFunction& called, Decoder& arguments,
      const std::shared_ptr<detail::TransferGate>& gate) override;
  [[nodiscard]] FunctionCounters* counters_of(const CalledFunction& called) override;

  /// Runs the calls that waited for `function`, which is in the table now.
  void exposed(std::string_view function) { parked_->exposed(function); }
  /// From `end` on, or from an earlier one, no call waits for its function. Without this call,
  /// calls wait without limit.
  void expect_functions_until(TimePoint end) { parked_->expect_functions_until(end); }
  /// Fails the calls that wait for their functions. From now on none waits.
  void close_parked(const std::exception_ptr& error) { parked_->close(error); }
  /// Fails the calls that wait for their turn or a lock. From now on none waits.
  void close(const std::exception_ptr& error);

  /// The number of calls that wait for their functions.
  [[nodiscard]] std::size_t parked() const { return parked_->size(); }
  /// Empty if no limit is set.
  [[nodiscard]] std::optional<QueueMetrics> queue_metrics() const;

 private:
  [[nodiscard]] std::shared_ptr<detail::ExposedFunction> resolve(CalledFunction& called) const;
  [[nodiscard]] std::exception_ptr denial(const detail::ExposedFunction& function,
                                          const detail::IncomingCall& call) const;
  template <class Call>
  void admit(CalledFunction& called, Call& call, const CallArrival& arrival);
  template <class Call>
  void run(std::shared_ptr<detail::ExposedFunction> function, Call& call,
           const std::shared_ptr<LocalNode>& node, bool limited);
  void park(CalledFunction& called, detail::WaitingCall call, const CallArrival& arrival,
            const std::exception_ptr& error);
  void reject(const CalledFunction& called, detail::IncomingCall& call, const CallArrival& arrival,
              const std::exception_ptr& error);

  const Environment environment_;
  const std::shared_ptr<ParkedCalls> parked_;
  const std::shared_ptr<AdmissionQueue> queue_;  // null if no limit is set
  const std::shared_ptr<ExclusiveCalls> exclusive_;
};

}  // namespace batchrpc
