#pragma once

#include <cstddef>
#include <optional>

#include "batchrpc/base/export.hpp"
#include "batchrpc/batch/batch_row.hpp"
#include "batchrpc/call/call_extras.hpp"

/// Records a batch, for those of its rows that are recorded calls.
namespace batchrpc::detail {

/// While it exists, the calling thread's work is recorded in `recorded`, and is part of no call.
/// Null: nothing changes.
class BATCHRPC_EXPORT RecordingScope {
 public:
  explicit RecordingScope(const Ref<const CallExtras>& recorded);
  ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  std::optional<CallContext> context_;
  const CallContext* outer_ = nullptr;
};

/// Call it before the handler runs for the calls [first, last). If one of them is recorded, so is
/// the run; calls that the handler makes then belong to the trace of the first recorded one.
BATCHRPC_EXPORT void record_run(TakenBatch& batch, std::size_t first, std::size_t last);

/// Call it after the handler's run for the calls [first, last), before they are answered. What the
/// run caused is then recorded with these calls.
BATCHRPC_EXPORT void report_rows(const TakenBatch& batch, std::size_t first,
                                 std::size_t last) noexcept;

}  // namespace batchrpc::detail
