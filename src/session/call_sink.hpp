#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/function_kind.hpp"
#include "batchrpc/call/receive_plan.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "metrics/node_counters.hpp"

namespace batchrpc {

/// A function of this node's, as a peer has defined it for its calls.
struct CalledFunction {
  std::string name;
  std::string signature;
  std::string shown;        ///< the name as people know it
  bool of_program = false;  ///< not of the library itself
  /// Reads the key by which its calls start in order (FunctionKind); null: in any order.
  std::optional<detail::OrderingKey> (*ordering_key)(Decoder& arguments) = nullptr;
  std::weak_ptr<detail::ExposedFunction> exposed{};  ///< what the CallSink found for it last
};

/// Where a call has come to, and when.
struct CallArrival {
  const std::shared_ptr<LocalNode>& node;  ///< whose function runs, for codecs
  std::uint64_t at = 0;                    ///< by Loop::ticks()
};

/// Takes the calls that sessions have read, and has them answered. A session uses it on its loop.
class CallSink {
 public:
  virtual ~CallSink() = default;

  /// A peer has defined a function for its calls, which is exposed or not.
  [[nodiscard]] virtual CalledFunction define(std::string name, std::string signature) = 0;
  /// Runs the call, now or later, or answers it with the reason why not. The call is moved away or
  /// answered when this returns.
  virtual void take(CalledFunction& called, detail::IncomingCall& call,
                    const CallArrival& arrival) = 0;
  /// A call has come whose payloads follow: asks its function (ExposedFunction::announce), if it is
  /// exposed and may run. Throws what the function throws, NotFound or BadSignature.
  [[nodiscard]] virtual detail::ReceivePlan announce(
      CalledFunction& called, Decoder& arguments,
      const std::shared_ptr<detail::TransferGate>& gate) = 0;
  /// Where calls of that function are counted; null: nobody counts them.
  [[nodiscard]] virtual FunctionCounters* counters_of(const CalledFunction& called) = 0;
};

}  // namespace batchrpc
