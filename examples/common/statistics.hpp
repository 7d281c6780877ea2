#pragma once

#include <vector>

namespace batchrpc_examples {

/// The value below which `percent` of the values lie, in [0, 100], with linear interpolation
/// between the two nearest (as NumPy's default). Throws `std::invalid_argument` when there are no
/// values or `percent` is out of range.
double percentile(std::vector<double> values, double percent);

/// Several percentiles of the same values, in the order asked for; sorts once.
std::vector<double> percentiles(std::vector<double> values, const std::vector<double>& percents);

/// `percentile(values, 50)`.
double median(std::vector<double> values);

/// Throws `std::invalid_argument` when there are no values.
double mean(const std::vector<double>& values);

}  // namespace batchrpc_examples
