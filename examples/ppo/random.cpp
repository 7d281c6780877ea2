#include "ppo/random.hpp"

#include <numeric>
#include <utility>

namespace batchrpc_examples::ppo {

std::vector<std::int64_t> shuffled(std::int64_t size, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t left = order.size(); left > 1; --left) {  // Fisher and Yates
    const auto chosen = static_cast<std::size_t>(unit(mix(seed, left)) * static_cast<double>(left));
    std::swap(order[left - 1], order[chosen]);
  }
  return order;
}

}  // namespace batchrpc_examples::ppo
