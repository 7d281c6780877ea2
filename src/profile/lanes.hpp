#pragma once

#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "batchrpc/base/executor.hpp"

/// Which row of a trace a slice goes into. Slices are placed in the order in which they begin, of
/// those that begin together the longer first. Lanes count from 0 on; the first that is free is
/// taken.
namespace batchrpc::profile {

/// Slices of one lane follow one another.
class DisjointLanes {
 public:
  std::size_t place(TimePoint begin, TimePoint end) {
    while (!taken_.empty() && taken_.top().first <= begin) {
      free_.push(taken_.top().second);
      taken_.pop();
    }
    if (free_.empty()) free_.push(count_++);
    const std::size_t lane = free_.top();
    free_.pop();
    taken_.emplace(end, lane);
    return lane;
  }

 private:
  template <typename T>
  using SmallestFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;

  SmallestFirst<std::pair<TimePoint, std::size_t>> taken_;  // until when
  SmallestFirst<std::size_t> free_;
  std::size_t count_ = 0;
};

/// Slices of one lane follow one another, or lie within one another.
class NestedLanes {
 public:
  /// Not in a lane before `lowest`.
  std::size_t place(TimePoint begin, TimePoint end, std::size_t lowest = 0) {
    for (std::size_t lane = lowest;; ++lane) {
      if (lane >= open_.size()) open_.resize(lane + 1);
      auto& ends = open_[lane];
      while (!ends.empty() && ends.back() <= begin)
        ends.pop_back();
      if (ends.empty() || end <= ends.back()) {
        ends.push_back(end);
        return lane;
      }
    }
  }

 private:
  std::vector<std::vector<TimePoint>> open_;  // when those end that have begun, the innermost last
};

}  // namespace batchrpc::profile
