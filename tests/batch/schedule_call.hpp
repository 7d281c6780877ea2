#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "batchrpc/batch/batcher.hpp"

namespace batchrpc::test {

/// A row of a schedule. Its number is like no other's.
struct Row {
  enum class Fault : unsigned char {
    none,
    throws,  ///< what is done with it throws
    fails,   ///< the handler has an error for it alone
  };
  int number = 0;
  int key = 0;
  int priority = 0;
  Fault fault = Fault::none;
  std::size_t weight = 0;

  /// For the batcher, which takes it for a container of so many bytes.
  /// @{
  [[nodiscard]] std::size_t size() const { return weight; }
  char operator[](std::size_t /*index*/) const { return 0; }
  /// @}
};

/// What has become of a call; as BatchStatistics counts its rows.
enum class Fate : unsigned char {
  open,
  answered,
  failed,
  rejected,
  invalid,
  expired,
  cancelled,
  left,
  dropped,
};
inline constexpr std::size_t kFates = 9;

struct ModelBatch;

/// A call of a schedule, and what must become of it.
struct ScheduledCall {
  enum class Place : unsigned char { nowhere, queue, held, batch };

  std::vector<Row> rows;  // one, or many
  bool many = false;
  std::shared_ptr<const PeerIdentity> caller;
  std::size_t bytes = 0;
  TimePoint arrived;
  std::optional<TimePoint> deadline;
  std::stop_source stop;
  std::size_t ahead = 0;  // rows that were queued, or that running batches may have had

  // Where it is now.
  Place place = Place::nowhere;
  std::size_t overtaken = 0;  // by calls of its key that came later
  std::optional<BatchReason> flushed;
  std::size_t summed = 0;  // rows that the reducer has
  bool accumulated = false;
  ModelBatch* batch = nullptr;
  bool ran = false;

  // What is to become of it, as soon as that is known, and whether it has been told.
  Fate fate = Fate::open;
  std::optional<ErrorCode> error;
  std::vector<int> results;
  bool completed = false;

  [[nodiscard]] int key() const { return rows.front().key; }
  [[nodiscard]] int priority() const {
    int highest = rows.front().priority;
    for (const Row& row : rows)
      highest = std::max(highest, row.priority);
    return highest;
  }
  [[nodiscard]] bool waits() const { return place == Place::queue || place == Place::held; }

  void fails(Fate as, ErrorCode with) {
    fate = as;
    error = with;
  }
  void is_answered(std::vector<int> with) {
    fate = Fate::answered;
    results = std::move(with);
  }
};

using ScheduledCalls = std::vector<ScheduledCall*>;

inline std::size_t rows_of(const ScheduledCalls& calls) {
  std::size_t rows = 0;
  for (const ScheduledCall* call : calls)
    rows += call->rows.size();
  return rows;
}

/// A batch that must be, and runs.
struct ModelBatch {
  ScheduledCalls calls;  // in their order
  BatchReason reason = BatchReason::idle;
  TimePoint started;
  std::shared_ptr<const BatchOptions> options;  // that were in force
  std::size_t open = 0;                         // calls that are not completed
};

}  // namespace batchrpc::test
