#pragma once

#include <vector>

namespace batchrpc_examples {

/// The value below which `percent` (0 to 100) of the values lie, interpolated linearly between the
/// two nearest, as in NumPy. Throws `std::invalid_argument` if there are no values or `percent` is
/// out of range.
double percentile(std::vector<double> values, double percent);

/// Several percentiles of the same values, in the order of `percents`. Sorts once.
std::vector<double> percentiles(std::vector<double> values, const std::vector<double>& percents);

/// `percentile(values, 50)`.
double median(std::vector<double> values);

/// Throws `std::invalid_argument` if there are no values.
double mean(const std::vector<double>& values);

}  // namespace batchrpc_examples
