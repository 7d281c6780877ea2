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
  size,       ///< max_size rows were there, or the size that the batcher had chosen
  preferred,  ///< the largest preferred size was reached
  min_size,   ///< min_size rows were there
  all,        ///< every live member of the group had a row that waited
  wait,       ///< its oldest row had waited for max_wait, or for as long as the batcher had chosen
  flush,      ///< flush(), or close() to drain
  full,       ///< there was no room for the rows that it waited for
};
/// How many reasons there are.
inline constexpr std::size_t kBatchReasons = 8;

/// Such as "idle".
[[nodiscard]] BATCHRPC_EXPORT std::string_view to_string(BatchReason reason) noexcept;

/// What a handler may ask of its batch: it takes a `const BatchInfo&` as its last parameter. Valid
/// until the handler's result is there.
struct BatchInfo {
  /// One call's share of the batch.
  struct Call {
    std::shared_ptr<const PeerIdentity> caller{};  ///< null: of this process
    TimePoint arrived{};                           ///< on the batcher's clock
    std::optional<TimePoint> deadline{};           ///< when the caller stops waiting
    std::size_t first_row = 0;                     ///< its place in the batch
    std::size_t rows = 1;                          ///< how many it has
    int priority = 0;                              ///< as BatchRules::priority gave it
    TraceContext trace{};                          ///< that it is part of; not valid: none
    /// What its caller has sent along (CallOptions::metadata), in its order; of a row that a
    /// handler has made, what came with the call which that answers. A view, in copies too: valid
    /// until the result is there.
    std::span<const std::pair<std::string, std::string>> metadata{};
  };

  std::size_t rows = 0;                    ///< of callers, without padding
  std::size_t padding = 0;                 ///< rows behind them that stand for nobody
  std::string key{};                       ///< what BatchRules::key gave, the same for all rows
  BatchReason reason = BatchReason::idle;  ///< why it started
  TimePoint started{};                     ///< when the rows were taken, on the batcher's clock
  std::vector<Call> calls{};               ///< in the order of their rows
};

}  // namespace batchrpc
