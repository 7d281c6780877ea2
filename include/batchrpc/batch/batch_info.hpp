#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/call/call_context.hpp"
#include "batchrpc/trace/trace_context.hpp"

namespace batchrpc {

/// Why a batch started.
enum class BatchReason : std::uint8_t {
  idle,       ///< the handler was idle
  size,       ///< max_size rows were waiting, or the size that the batcher had chosen
  preferred,  ///< the largest preferred size was reached
  min_size,   ///< min_size rows were waiting
  all,        ///< every live member of the group had a waiting row
  wait,   ///< its oldest row had waited for max_wait, or for the wait that the batcher had chosen
  flush,  ///< flush(), or close() to drain
  full,   ///< there was no room for the rows that it was waiting for
};
/// The number of reasons.
inline constexpr std::size_t kBatchReasons = 8;

/// Returns a name such as "idle".
[[nodiscard]] BATCHRPC_EXPORT std::string_view to_string(BatchReason reason) noexcept;

/// Describes a batch to its handler, which takes a `const BatchInfo&` as its last parameter. Valid
/// until the handler's result is complete.
struct BatchInfo {
  /// One call's share of the batch.
  struct Call {
    std::shared_ptr<const PeerIdentity> caller{};  ///< null: a call of this process
    TimePoint arrived{};                           ///< on the batcher's clock
    std::optional<TimePoint> deadline{};           ///< when the caller stops waiting
    std::size_t first_row = 0;                     ///< index of its first row in the batch
    std::size_t rows = 1;                          ///< number of its rows
    int priority = 0;                              ///< from BatchRules::priority
    TraceContext trace{};  ///< the trace that it belongs to; not valid: none
    /// CallOptions::metadata as the caller sent it, in the same order. A row that a handler has
    /// requested has the metadata of the call that the handler answers. This is a view, in copies
    /// too: valid until the handler's result is complete.
    std::span<const std::pair<std::string, std::string>> metadata{};
  };

  std::size_t rows = 0;                    ///< rows of callers, without padding
  std::size_t padding = 0;                 ///< padding rows at the end, which belong to no caller
  std::string key{};                       ///< from BatchRules::key; the same for all rows
  BatchReason reason = BatchReason::idle;  ///< why the batch started
  TimePoint started{};        ///< when the rows were taken from the queue, on the batcher's clock
  std::vector<Call> calls{};  ///< in the order of their rows
};

}  // namespace batchrpc
