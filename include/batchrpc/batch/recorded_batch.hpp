#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "batchrpc/base/export.hpp"
#include "batchrpc/batch/batch_row.hpp"
#include "batchrpc/node/call_extras.hpp"
#include "batchrpc/transport/loop.hpp"

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

/// Has the batch's handler recorded, if a row is.
void record_batch(TakenBatch& batch, const std::shared_ptr<Loop>& clock);

/// The handler is to run for the calls [first, last): what it calls is of the trace of the first of
/// these that is recorded.
BATCHRPC_EXPORT void record_run(TakenBatch& batch, std::size_t first, std::size_t last);

/// The handler has run for the calls [first, last): what it caused since the last time is theirs.
/// Before they are answered.
BATCHRPC_EXPORT void tell_rows(const TakenBatch& batch, std::size_t first, std::size_t last);

}  // namespace batchrpc::detail
