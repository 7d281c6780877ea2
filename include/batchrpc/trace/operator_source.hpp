#pragma once

#include <memory>
#include <string>

#include "batchrpc/trace/call_record.hpp"

/// How LibTorch's operators come into the records of calls, without LibTorch in the core.
namespace batchrpc::detail {

class OperatorSource;

/// Takes operators as they end. Thread-safe.
class OperatorSink {
 public:
  virtual void add(OperatorRecord&& record) noexcept = 0;
  /// The clock that `begin` and `end` are of.
  [[nodiscard]] virtual TimePoint now() const noexcept = 0;
  /// What a thread that works for this asks for its operators; null: nothing, and none come.
  [[nodiscard]] virtual const OperatorSource* source() const noexcept { return nullptr; }

 protected:
  ~OperatorSink() = default;
};

/// What tells of operators. It has no state but what it keeps for each thread. batchrpc::torch has
/// the one of LibTorch: torch_operators().
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
