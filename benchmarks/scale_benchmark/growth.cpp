#include "scale_benchmark/growth.hpp"

#include <algorithm>
#include <cmath>

#include "common/least_squares.hpp"

namespace scale_benchmark {

using batchrpc_benchmarks::least_squares;
using batchrpc_benchmarks::Line;
using batchrpc_benchmarks::LinePoint;

std::optional<Growth> fit(const std::vector<Point>& points,
                          const std::function<double(const Point&)>& cost) {
  if (points.size() < 3) return std::nullopt;
  std::vector<Point> sorted = points;
  std::sort(sorted.begin(), sorted.end(),
            [](const Point& one, const Point& other) { return one.size < other.size; });
  std::vector<LinePoint> all;
  std::vector<LinePoint> logarithms;
  const std::size_t upper_half = std::min(sorted.size() / 2, sorted.size() - 2);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double y = cost(sorted[i]);
    if (!(y > 0)) return std::nullopt;
    all.push_back({.x = sorted[i].size, .y = y, .weight = 1 / (y * y)});
    if (i >= upper_half) logarithms.push_back({.x = std::log(sorted[i].size), .y = std::log(y)});
  }
  const Line line = least_squares(all);
  return Growth{
      .fixed = line.at_zero, .each = line.slope, .power = least_squares(logarithms).slope};
}

}  // namespace scale_benchmark
