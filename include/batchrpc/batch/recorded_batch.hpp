#pragma once

#include <cstddef>
#include <optional>

#include "batchrpc/base/export.hpp"
#include "batchrpc/batch/batch_row.hpp"
#include "batchrpc/call/call_extras.hpp"

/// What is recorded of a batch, for the rows that are calls which are recorded.
namespace batchrpc::detail {

/// While it lives, what the calling thread runs is recorded there, and is part of no call. Null:
/// nothing changes.
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

/// The handler is to run for the calls [first, last). If one of them is recorded, so is the run,
/// and what it calls is of the trace of the first of these.
BATCHRPC_EXPORT void record_run(TakenBatch& batch, std::size_t first, std::size_t last);

/// The run of the handler for the calls [first, last) is done: what it caused is theirs. Before
/// they are answered.
BATCHRPC_EXPORT void report_rows(const TakenBatch& batch, std::size_t first,
                                 std::size_t last) noexcept;

}  // namespace batchrpc::detail
