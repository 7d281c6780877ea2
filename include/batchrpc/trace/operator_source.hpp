#pragma once

#include <memory>
#include <string>

#include "batchrpc/trace/call_record.hpp"

/// How LibTorch's operators get into the records of calls, although the core does not use LibTorch.
namespace batchrpc::detail {

class OperatorSource;

/// Takes operators as they end. Thread-safe.
class OperatorSink {
 public:
  virtual void add(OperatorRecord&& record) noexcept = 0;
  /// The time on the clock that `begin` and `end` use.
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
  /// Sends the operators that the calling thread begins from now on to `sink`, which must outlive
  /// this. With null no operators are reported, and they cost nothing. Returns the previous sink.
  virtual OperatorSink* exchange_sink(OperatorSink* sink) const noexcept = 0;
  /// Whether the program itself profiles the calling thread, for example with
  /// torch::autograd::profiler.
  [[nodiscard]] virtual bool is_watched() const noexcept = 0;
  /// Opens a range with this name in the program's own profile, from now until it is destroyed, on
  /// any thread. Null if the program does not profile, or the range could not be created.
  [[nodiscard]] virtual std::shared_ptr<void> begin_range(const std::string& name) const = 0;

 protected:
  ~OperatorSource() = default;
};

}  // namespace batchrpc::detail
