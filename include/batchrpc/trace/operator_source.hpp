#pragma once

#include <memory>
#include <string>

#include "batchrpc/base/export.hpp"
#include "batchrpc/trace/call_record.hpp"

/// How LibTorch's operators come into the records of calls, without LibTorch in the core.
namespace batchrpc::detail {

/// Takes operators as they end. Thread-safe.
class OperatorSink {
 public:
  virtual void add(OperatorRecord&& record) noexcept = 0;
  /// The clock that `begin` and `end` are of.
  [[nodiscard]] virtual TimePoint now() const noexcept = 0;

 protected:
  ~OperatorSink() = default;
};

/// What tells of operators. Stateless but for what it keeps for each thread.
class OperatorSource {
 public:
  /// From now on the operators that the calling thread begins go to `sink`, which outlives that;
  /// null: to nobody, and then they cost nothing. Returns the one before.
  virtual OperatorSink* exchange_sink(OperatorSink* sink) const noexcept = 0;
  /// Whether the program itself is profiling the calling thread, as by torch::autograd::profiler.
  [[nodiscard]] virtual bool is_watched() const noexcept = 0;
  /// A range of that name in the program's own profile, from now until it is destroyed, on any
  /// thread. Null where there is none, or it could not be made.
  [[nodiscard]] virtual std::shared_ptr<void> begin_range(const std::string& name) const = 0;

 protected:
  ~OperatorSource() = default;
};

}  // namespace batchrpc::detail

/// That of batchrpc::torch; absent, and so null, in programs without it.
extern "C" __attribute__((weak)) BATCHRPC_EXPORT const batchrpc::detail::OperatorSource*
batchrpc_operator_source() noexcept;
