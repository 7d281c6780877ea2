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

/// Where the batch's handler is recorded; null if no row is.
[[nodiscard]] Ref<const CallExtras> record_batch(const BatchCalls& calls,
                                                 const std::shared_ptr<Loop>& clock);

/// The handler has run for the calls [first, last): what it caused since the last time is theirs.
/// Before they are answered.
BATCHRPC_EXPORT void tell_rows(const TakenBatch& batch, std::size_t first, std::size_t last);

}  // namespace batchrpc::detail
