#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/function_kind.hpp"
#include "batchrpc/call/receive_plan.hpp"
#include "call/incoming_call.hpp"
#include "metrics/node_counters.hpp"

namespace batchrpc {

/// A function of this node, as a peer has defined it for its calls.
struct CalledFunction {
  std::string name;
  std::string signature;
  std::string shown;        ///< the name as users know it
  bool of_program = false;  ///< not one of the library's own functions
  /// Reads the key by which its calls are ordered (FunctionKind). Null: the order is free.
  std::optional<detail::OrderingKey> (*ordering_key)(Decoder& arguments) = nullptr;
  std::weak_ptr<detail::ExposedFunction> exposed{};  ///< found for it by the CallSink last
};

/// The node at which a call has arrived, the time, and the size.
struct CallArrival {
  const std::shared_ptr<LocalNode>& node;  ///< the node whose function runs, for codecs
  std::uint64_t at = 0;                    ///< in ticks of Loop::ticks()
  std::size_t bytes = 0;                   ///< of its arguments
};

/// Takes the calls that sessions have read, and gets them answered. A session uses it on its loop.
class CallSink {
 public:
  virtual ~CallSink() = default;

  /// A peer has defined a function for its calls. It may be exposed or not.
  [[nodiscard]] virtual CalledFunction define(std::string name, std::string signature) = 0;
  /// Runs the call, now or later, or answers it with the reason for the refusal. When this returns,
  /// the call is answered or kept. `called` lives as long as the call.
  virtual void take(CalledFunction& called, detail::ArrivedCall&& call,
                    const CallArrival& arrival) = 0;
  /// A call has come, and its payloads follow. Asks its function (ExposedFunction::announce) if
  /// that is exposed and may run. Throws NotFound, BadSignature, or any exception of the function.
  [[nodiscard]] virtual detail::ReceivePlan announce(
      CalledFunction& called, Decoder& arguments,
      const std::shared_ptr<detail::TransferGate>& gate) = 0;
  /// The counters of that function; null: its calls are not counted.
  [[nodiscard]] virtual FunctionCounters* counters_of(const CalledFunction& called) = 0;
};

}  // namespace batchrpc
