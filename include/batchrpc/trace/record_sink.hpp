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
  /// Reports that `events` calls and operators could not be kept, because memory ran out.
  virtual void lost(std::size_t events) noexcept = 0;
  /// Whether it wants the callee's side of calls.
  [[nodiscard]] virtual bool wants_record() const noexcept { return true; }
  /// Whether it also wants the operators that a call causes.
  [[nodiscard]] virtual bool wants_operators() const noexcept = 0;
};

/// The number of calls and operators in `record`, itself included.
[[nodiscard]] BATCHRPC_EXPORT std::size_t events_of(const CallRecord& record) noexcept;
/// The same, plus those that were left out of it: the number that is lost with it.
[[nodiscard]] BATCHRPC_EXPORT std::uint64_t all_events_of(const CallRecord& record) noexcept;

/// Drops the calls and operators that `record` caused, and counts them as left out.
BATCHRPC_EXPORT void leave_out_caused(CallRecord& record) noexcept;

/// Removes all operators from `record` and from the calls that it caused.
BATCHRPC_EXPORT void leave_out_operators(CallRecord& record) noexcept;

}  // namespace batchrpc::detail
