#include "scale_benchmark/growth.hpp"

#include <algorithm>
#include <cmath>

namespace scale_benchmark {
namespace {

struct Line {
  double at_zero = 0;
  double slope = 0;
};

struct Sample {
  double x = 0;
  double y = 0;
  double weight = 1;
};

Line least_squares(const std::vector<Sample>& samples) {
  double weights = 0;
  double x = 0;
  double y = 0;
  for (const Sample& sample : samples) {
    weights += sample.weight;
    x += sample.weight * sample.x;
    y += sample.weight * sample.y;
  }
  x /= weights;
  y /= weights;
  double xx = 0;
  double xy = 0;
  for (const Sample& sample : samples) {
    xx += sample.weight * (sample.x - x) * (sample.x - x);
    xy += sample.weight * (sample.x - x) * (sample.y - y);
  }
  const double slope = xy / xx;
  return {.at_zero = y - slope * x, .slope = slope};
}

}  // namespace

std::optional<Growth> fit(const std::vector<Point>& points,
                          const std::function<double(const Point&)>& cost) {
  if (points.size() < 3) return std::nullopt;
  std::vector<Point> sorted = points;
  std::sort(sorted.begin(), sorted.end(),
            [](const Point& one, const Point& other) { return one.size < other.size; });
  std::vector<Sample> all;
  std::vector<Sample> logarithms;
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
