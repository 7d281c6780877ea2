#pragma once

#include <vector>

namespace batchrpc_benchmarks {

struct LinePoint {
  double x = 0;
  double y = 0;
  double weight = 1;
};

struct Line {
  double at_zero = 0;
  double slope = 0;
};

/// The line through these points with the smallest weighted sum of squared errors. At least two
/// points must have different x.
Line least_squares(const std::vector<LinePoint>& points);

}  // namespace batchrpc_benchmarks
