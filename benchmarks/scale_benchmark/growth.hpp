#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace scale_benchmark {

/// What a piece of work of some size took.
struct Point {
  double size = 0;     ///< peers, calls, objects, bytes
  double seconds = 0;  ///< for all of it
  double bytes = 0;    ///< of memory, for all of it; 0: not measured
};

/// How a cost grows with the size of the work: cost = fixed + each × size, and cost ∝ size^power.
struct Growth {
  double fixed = 0;
  double each = 0;
  double power = 0;  ///< 1: linear; more: faster than that
};

/// Fits both to the points, which have different sizes above 0 and costs above 0, by least squares:
/// the line with relative errors, so that small sizes count as much as large ones; the power to the
/// upper half of the points (in order of size), where fixed costs do not hide it. Nothing for fewer
/// than 3 points.
std::optional<Growth> fit(const std::vector<Point>& points,
                          const std::function<double(const Point&)>& cost);

}  // namespace scale_benchmark
