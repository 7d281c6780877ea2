#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace scale_benchmark {

/// The cost of a piece of work of some size.
struct Point {
  double size = 0;     ///< number of peers, calls, objects or bytes
  double seconds = 0;  ///< for all of the work
  double bytes = 0;    ///< of memory, for all of the work; 0: not measured
};

/// How a cost grows with the size of the work: cost = fixed + each × size, and cost ∝ size^power.
struct Growth {
  double fixed = 0;
  double each = 0;
  double power = 0;  ///< 1: linear; above 1: faster than linear
};

/// Fits both to the points by least squares; sizes must differ, and sizes and costs must be above
/// 0. The line uses relative errors, so that small sizes count as much as large ones. The power
/// uses the upper half of the points (by size), where fixed costs do not hide it. Returns nothing
/// for fewer than 3 points.
std::optional<Growth> fit(const std::vector<Point>& points,
                          const std::function<double(const Point&)>& cost);

}  // namespace scale_benchmark
