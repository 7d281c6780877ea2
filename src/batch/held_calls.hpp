#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "batch/caller_shares.hpp"
#include "batch/turns.hpp"
#include "batchrpc/batch/batch_row.hpp"

namespace batchrpc::detail {

/// Calls that wait for room in a batcher's queue; the callers take turns. Not thread-safe.
class HeldCalls {
 public:
  void add(std::unique_ptr<BatchCall> call) {
    rows_ += call->rows;
    bytes_ += call->bytes;
    shares_.add(*call);
    call->number = arrived_++;
    if (call->deadline) earliest_deadline_ = std::min(earliest_deadline_, *call->deadline);
    const PeerIdentity* const caller = call->caller.get();
    calls_.add(caller, std::move(call));
  }

  /// The call that is next; null if there is none.
  [[nodiscard]] const BatchCall* next() const {
    return calls_.empty() ? nullptr : calls_.next().get();
  }
  [[nodiscard]] std::unique_ptr<BatchCall> take_next() {
    std::unique_ptr<BatchCall> call = calls_.take_next();
    count_out(*call);
    return call;
  }

  template <class Which>
  void remove_if(const Which& which, BatchCalls& to) {
    calls_.remove_if([&](std::unique_ptr<BatchCall>& call) {
      if (!which(*call)) return false;
      count_out(*call);
      to.push_back(std::move(call));
      return true;
    });
    earliest_deadline_ = TimePoint::max();
    for_each([this](const BatchCall& call) {
      if (call.deadline) earliest_deadline_ = std::min(earliest_deadline_, *call.deadline);
    });
  }
  void remove_expired(TimePoint now, BatchCalls& to) {
    if (earliest_deadline_ > now) return;
    remove_if([now](const BatchCall& call) { return call.deadline && *call.deadline <= now; }, to);
  }

  /// The calls held now will not wait for more rows in the queue, either.
  void flush() const {
    calls_.for_each([](const std::unique_ptr<BatchCall>& call) { call->flushed = true; });
  }

  /// See CallerShares.
  [[nodiscard]] std::vector<const BatchCall*> who_gives_way(const BatchCall& newcomer,
                                                            CallerShares::Measure of,
                                                            std::size_t excess) const {
    return shares_.who_gives_way(*this, newcomer, of, excess);
  }
  template <class Use>
  void for_each(const Use& use) const {
    calls_.for_each([&use](const std::unique_ptr<BatchCall>& call) { use(*call); });
  }

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] TimePoint earliest_deadline() const noexcept { return earliest_deadline_; }

 private:
  void count_out(const BatchCall& call) {
    rows_ -= call.rows;
    bytes_ -= call.bytes;
    shares_.remove(call);
  }

  Turns<std::unique_ptr<BatchCall>> calls_;
  CallerShares shares_;
  std::uint64_t arrived_ = 0;  // calls that ever arrived
  std::size_t rows_ = 0;
  std::size_t bytes_ = 0;
  TimePoint earliest_deadline_ = TimePoint::max();  // or earlier
};

}  // namespace batchrpc::detail
