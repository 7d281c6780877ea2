#pragma once

#include <string>
#include <vector>

namespace batchrpc_examples {

/// About `count` round numbers, at least two, that cover `low` to `high`. The step is 1, 2 or 5
/// times a power of ten. With `low == high` they lie around that value.
std::vector<double> nice_ticks(double low, double high, int count, bool whole_numbers = false);

/// A tick's text, with the digits that a step of this size needs: `0.25`, `1500`, `2,500,000`.
std::string tick_label(double value, double step);

}  // namespace batchrpc_examples
