#pragma once

#include <cstddef>
#include <cstdint>

#include "batchrpc/base/export.hpp"
#include "batchrpc/trace/call_record.hpp"

namespace batchrpc::detail {

/// Takes the records of calls that have ended. Thread-safe.
class BATCHRPC_EXPORT RecordSink {
 public:
  virtual ~RecordSink();
  virtual void add(CallRecord&& record) noexcept = 0;
  /// So many calls and operators could not be kept, for want of memory.
  virtual void lost(std::size_t events) noexcept = 0;
  /// Whether the callee's side of calls is wanted.
  [[nodiscard]] virtual bool wants_record() const noexcept { return true; }
  /// Whether the operators that a call causes are wanted, too.
  [[nodiscard]] virtual bool wants_operators() const noexcept = 0;
};

/// How many operators and calls `record` has, with itself.
[[nodiscard]] BATCHRPC_EXPORT std::size_t events_of(const CallRecord& record) noexcept;
/// And with those that were left out of it: so many are lost with it.
[[nodiscard]] BATCHRPC_EXPORT std::uint64_t all_events_of(const CallRecord& record) noexcept;

/// Leaves out what `record` caused, which is counted.
BATCHRPC_EXPORT void leave_out_caused(CallRecord& record) noexcept;

/// For who wants none: takes the operators out of `record`, and of what it caused.
BATCHRPC_EXPORT void leave_out_operators(CallRecord& record) noexcept;

}  // namespace batchrpc::detail
