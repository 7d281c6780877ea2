#include "common/least_squares.hpp"

namespace batchrpc_benchmarks {

Line least_squares(const std::vector<LinePoint>& points) {
  double weights = 0;
  double x = 0;
  double y = 0;
  for (const LinePoint& point : points) {
    weights += point.weight;
    x += point.weight * point.x;
    y += point.weight * point.y;
  }
  x /= weights;
  y /= weights;
  double xx = 0;
  double xy = 0;
  for (const LinePoint& point : points) {
    xx += point.weight * (point.x - x) * (point.x - x);
    xy += point.weight * (point.x - x) * (point.y - y);
  }
  const double slope = xy / xx;
  return {.at_zero = y - slope * x, .slope = slope};
}

}  // namespace batchrpc_benchmarks
