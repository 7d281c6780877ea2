#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "batchrpc/base/executor.hpp"

/// Chooses the row of a trace for each slice. Slices are placed in the order of their begins, and
/// the longer first if they begin together. Lanes count from 0; a slice gets the first free one.
namespace batchrpc::profile {

template <typename T>
using SmallestFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;

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
  SmallestFirst<std::pair<TimePoint, std::size_t>> taken_;  // with the ends of their slices
  SmallestFirst<std::size_t> free_;
  std::size_t count_ = 0;
};

/// Slices of one lane follow one another, or nest. Takes logarithmic time, since thousands may wait
/// on one thread at once.
class NestedLanes {
 public:
  /// The lane is at least `lowest`.
  std::size_t place(TimePoint begin, TimePoint end, std::size_t lowest = 0) {
    while (!ends_.empty() && ends_.top().first <= begin) {
      const std::size_t lane = ends_.top().second;
      ends_.pop();
      open_[lane].pop_back();
      update(lane);
    }
    std::size_t lane = first_with_room(end, lowest);
    while (lane == open_.size()) {
      grow();
      lane = first_with_room(end, lowest);
    }
    open_[lane].push_back(end);
    ends_.emplace(end, lane);
    update(lane);
    return lane;
  }

 private:
  // The latest end of a slice that begins now in the lane.
  [[nodiscard]] TimePoint room(std::size_t lane) const {
    return open_[lane].empty() ? TimePoint::max() : open_[lane].back();
  }
  void update(std::size_t lane) {
    std::size_t node = open_.size() + lane;
    room_[node] = room(lane);
    while (node /= 2)
      room_[node] = std::max(room_[2 * node], room_[2 * node + 1]);
  }
  // Returns the number of lanes if there is none.
  [[nodiscard]] std::size_t first_with_room(TimePoint end, std::size_t lowest) const {
    const std::size_t lanes = open_.size();
    if (lowest >= lanes) return lanes;
    std::size_t node = lanes + lowest;
    while (room_[node] < end) {
      while (node % 2 == 1)
        node /= 2;
      if (node == 0) return lanes;  // it was the last of all
      ++node;
    }
    while (node < lanes) {
      node *= 2;
      if (room_[node] < end) ++node;
    }
    return node - lanes;
  }
  void grow() {
    const std::size_t lanes = 2 * open_.size();
    open_.resize(lanes);
    room_.assign(2 * lanes, TimePoint::max());
    for (std::size_t lane = 0; lane < lanes / 2; ++lane)
      room_[lanes + lane] = room(lane);
    for (std::size_t node = lanes - 1; node > 0; --node)
      room_[node] = std::max(room_[2 * node], room_[2 * node + 1]);
  }

  // For each lane, the ends of its open slices, the innermost last. The number of lanes is a power
  // of two; some are unused.
  std::vector<std::vector<TimePoint>> open_{1};
  // A tree of maxima: the children of node n are 2n and 2n + 1, and the leaves are the lanes.
  std::vector<TimePoint> room_{2, TimePoint::max()};
  SmallestFirst<std::pair<TimePoint, std::size_t>> ends_;  // and in which lane
};

}  // namespace batchrpc::profile
