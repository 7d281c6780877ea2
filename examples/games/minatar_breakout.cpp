#include "games/minatar_breakout.hpp"

#include <algorithm>
#include <batchrpc/base/error.hpp>
#include <string>

namespace batchrpc_examples {

namespace rpc = batchrpc;

BreakoutBoard::Action breakout_action(std::span<const std::byte> action) {
  const std::int64_t number = rpc::elements_of<std::int64_t>(action)[0];
  if (number < 0 || number > 2) {
    throw rpc::InvalidArgument("Breakout's actions are 0, 1 and 2, not " + std::to_string(number));
  }
  return static_cast<BreakoutBoard::Action>(number);
}

MinAtarBreakout::MinAtarBreakout()
    : spec_{.observation = {rpc::ElementType::boolean,
                            {BreakoutBoard::kChannels, BreakoutBoard::kSize, BreakoutBoard::kSize}},
            .actions = 3} {}

void MinAtarBreakout::write(std::span<std::byte> observation) const {
  std::ranges::copy(game_.board().planes(), rpc::elements_of<std::uint8_t>(observation).begin());
}

void MinAtarBreakout::reset(std::optional<std::uint64_t> seed, std::span<std::byte> observation) {
  game_.reset(seed);
  write(observation);
}

rpc::EnvStep MinAtarBreakout::step(std::span<const std::byte> action,
                                   std::span<std::byte> observation) {
  const BreakoutBoard::Outcome outcome = game_.step(breakout_action(action));
  write(observation);
  return {.reward = static_cast<float>(outcome.reward), .terminated = outcome.ended};
}

}  // namespace batchrpc_examples
