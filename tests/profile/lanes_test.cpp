#include "profile/lanes.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

namespace batchrpc::profile {
namespace lanes_test {

TimePoint at(int time) { return TimePoint(Duration(time)); }

TEST_CASE("slices that follow one another share a lane, those that overlap do not") {
  DisjointLanes lanes;
  CHECK(lanes.place(at(0), at(10)) == 0);
  CHECK(lanes.place(at(2), at(5)) == 1);
  CHECK(lanes.place(at(3), at(4)) == 2);
  CHECK(lanes.place(at(5), at(20)) == 1);
  CHECK(lanes.place(at(10), at(10)) == 0);
  CHECK(lanes.place(at(10), at(11)) == 0);
}

TEST_CASE("slices within one another share a lane, those that cross do not") {
  NestedLanes lanes;
  CHECK(lanes.place(at(0), at(10)) == 0);
  CHECK(lanes.place(at(0), at(10)) == 0);
  CHECK(lanes.place(at(2), at(5)) == 0);
  CHECK(lanes.place(at(3), at(6)) == 1);
  CHECK(lanes.place(at(5), at(10)) == 0);
  CHECK(lanes.place(at(9), at(11)) == 1);
  CHECK(lanes.place(at(9), at(10), 2) == 2);
  CHECK(lanes.place(at(11), at(12)) == 0);
}

TEST_CASE("slices of a lane never cross, however they lie") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<int, int>> slices(50);  // begin, and the end's negative
    for (auto& [begin, end] : slices) {
      begin = static_cast<int>(random() % 40);
      end = -(begin + static_cast<int>(random() % 20));
    }
    std::sort(slices.begin(), slices.end());
    DisjointLanes disjoint;
    NestedLanes nested;
    std::vector<std::size_t> disjoint_lane;
    std::vector<std::size_t> nested_lane;
    for (const auto& [begin, end] : slices) {
      disjoint_lane.push_back(disjoint.place(at(begin), at(-end)));
      nested_lane.push_back(nested.place(at(begin), at(-end)));
    }
    for (std::size_t i = 0; i < slices.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const bool apart = -slices[j].second <= slices[i].first;
        const bool within = slices[i].second >= slices[j].second;
        if (disjoint_lane[i] == disjoint_lane[j] && !apart) FAIL("two overlap");
        if (nested_lane[i] == nested_lane[j] && !apart && !within) FAIL("two cross");
      }
    }
  }
}

TEST_CASE("fifty thousand slices that all cross have a lane each, one after another") {
  constexpr int kSlices = 50'000;
  NestedLanes lanes;
  std::size_t wrong = 0;
  for (int round = 0; round < 2; ++round) {
    const int first = round * 3 * kSlices;
    CHECK(lanes.place(at(first), at(first + 3 * kSlices)) == 0);
    for (int i = 0; i < kSlices; ++i) {
      const std::size_t lane = lanes.place(at(first + i), at(first + kSlices + i), 1);
      wrong += lane != static_cast<std::size_t>(i) + 1 ? 1 : 0;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("the lane of a slice is the first in which it crosses none") {
  std::mt19937 random(2);
  NestedLanes lanes;
  std::vector<std::vector<int>> ends;  // by lane, of those that have begun
  int begin = 0;
  std::size_t wrong = 0;
  for (int i = 0; i < 3000; ++i) {
    begin += static_cast<int>(random() % 3);
    const int end = begin + static_cast<int>(random() % 100);
    const std::size_t lowest = random() % 3;
    std::size_t expected = lowest;
    const auto crosses = [&](int other) { return begin < other && other < end; };
    while (expected < ends.size() &&
           std::any_of(ends[expected].begin(), ends[expected].end(), crosses))
      ++expected;
    if (expected >= ends.size()) ends.resize(expected + 1);
    ends[expected].push_back(end);
    wrong += lanes.place(at(begin), at(end), lowest) != expected ? 1 : 0;
  }
  CHECK(wrong == 0);
}

}  // namespace lanes_test
}  // namespace batchrpc::profile
