#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "batch/caller_shares.hpp"
#include "batchrpc/batch/batch_row.hpp"

namespace batchrpc::detail {

/// Calls that wait for room in a batcher's queue; the callers come in turn. Not thread-safe.
class HeldCalls {
 public:
  void add(std::unique_ptr<BatchCall> call) {
    rows_ += call->rows;
    bytes_ += call->bytes;
    shares_.add(*call);
    call->number = arrived_++;
    if (call->deadline) earliest_deadline_ = std::min(earliest_deadline_, *call->deadline);
    const PeerIdentity* const caller = call->caller.get();
    auto line = std::find_if(lines_.begin(), lines_.end(),
                             [caller](const Line& other) { return other.caller == caller; });
    if (line == lines_.end()) line = lines_.insert(lines_.end(), Line{caller, {}});
    line->calls.push_back(std::move(call));
  }

  /// The call whose turn it is; null when there is none.
  [[nodiscard]] const BatchCall* next() const {
    return lines_.empty() ? nullptr : lines_.front().calls.front().get();
  }
  [[nodiscard]] std::unique_ptr<BatchCall> take_next() {
    Line line = std::move(lines_.front());
    lines_.pop_front();
    std::unique_ptr<BatchCall> call = std::move(line.calls.front());
    line.calls.pop_front();
    if (!line.calls.empty()) lines_.push_back(std::move(line));
    count_out(*call);
    return call;
  }

  template <class Which>
  void remove_if(const Which& which, BatchCalls& to) {
    for (Line& line : lines_) {
      std::erase_if(line.calls, [&](std::unique_ptr<BatchCall>& call) {
        if (!which(*call)) return false;
        count_out(*call);
        to.push_back(std::move(call));
        return true;
      });
    }
    std::erase_if(lines_, [](const Line& line) { return line.calls.empty(); });
    earliest_deadline_ = TimePoint::max();
    for (const Line& line : lines_) {
      for (const auto& call : line.calls) {
        if (call->deadline) earliest_deadline_ = std::min(earliest_deadline_, *call->deadline);
      }
    }
  }
  void remove_expired(TimePoint now, BatchCalls& to) {
    if (earliest_deadline_ > now) return;
    remove_if([now](const BatchCall& call) { return call.deadline && *call.deadline <= now; }, to);
  }

  /// As CallerShares says.
  [[nodiscard]] std::vector<const BatchCall*> who_gives_way(const BatchCall& newcomer,
                                                            CallerShares::Measure of,
                                                            std::size_t excess) const {
    return shares_.who_gives_way(*this, newcomer, of, excess);
  }
  template <class Use>
  void for_each(const Use& use) const {
    for (const Line& line : lines_) {
      for (const auto& call : line.calls)
        use(*call);
    }
  }

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] TimePoint earliest_deadline() const noexcept { return earliest_deadline_; }

 private:
  struct Line {
    const PeerIdentity* caller;
    std::deque<std::unique_ptr<BatchCall>> calls;  // never empty
  };
  void count_out(const BatchCall& call) {
    rows_ -= call.rows;
    bytes_ -= call.bytes;
    shares_.remove(call);
  }

  std::deque<Line> lines_;  // in the order of their turns
  CallerShares shares_;
  std::uint64_t arrived_ = 0;  // calls that ever came
  std::size_t rows_ = 0;
  std::size_t bytes_ = 0;
  TimePoint earliest_deadline_ = TimePoint::max();  // or earlier
};

}  // namespace batchrpc::detail
