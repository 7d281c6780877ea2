#include "profile/self_times.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "profile/times.hpp"

namespace batchrpc::profile {

std::vector<Duration> self_times(const std::vector<OperatorRecord>& operators) {
  std::vector<Duration> times;
  times.reserve(operators.size());
  for (const OperatorRecord& run : operators)
    times.push_back(between(run.begin, run.end));

  // Outer operators come before those inside them. Of two with equal times, the inner one ended,
  // and was recorded, first.
  std::vector<std::size_t> order(operators.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const OperatorRecord& x = operators[a];
    const OperatorRecord& y = operators[b];
    return std::tie(x.thread, x.begin, y.end, b) < std::tie(y.thread, y.begin, x.end, a);
  });
  std::vector<std::size_t> open;  // each inside the one before
  for (const std::size_t i : order) {
    const OperatorRecord& run = operators[i];
    const auto within = [&](const OperatorRecord& outer) {
      return outer.thread == run.thread && run.begin < outer.end && run.end <= outer.end;
    };
    while (!open.empty() && !within(operators[open.back()]))
      open.pop_back();
    if (!open.empty()) {
      Duration& outer = times[open.back()];
      outer = std::max(Duration::zero(), outer - between(run.begin, run.end));
    }
    open.push_back(i);
  }
  return times;
}

}  // namespace batchrpc::profile
