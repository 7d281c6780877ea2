#include "env_benchmark/timed_group.hpp"

#include <algorithm>
#include <thread>

namespace env_benchmark {
namespace {

using Clock = std::chrono::steady_clock;

// A computation that neither a compiler nor a processor can skip.
std::uint64_t compute(std::uint64_t state, std::uint64_t rounds) {
  for (std::uint64_t i = 0; i < rounds; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
  }
  return state;
}

}  // namespace

StepTime make_step_time(double milliseconds, bool computes) {
  const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double, std::milli>(milliseconds));
  if (!computes) return {.sleep = time};
  constexpr std::uint64_t kRounds = 2'000'000;
  auto fastest = Clock::duration::max();
  std::uint64_t state = 1;
  for (int i = 0; i < 20; ++i) {  // some may be interrupted
    const auto begin = Clock::now();
    state = compute(state, kRounds);
    fastest = std::min(fastest, Clock::now() - begin);
  }
  const double rounds = static_cast<double>(kRounds) * static_cast<double>(time.count()) /
                        static_cast<double>(std::chrono::nanoseconds(fastest).count());
  return {.rounds = static_cast<std::uint64_t>(rounds) + (state == 0 ? 1 : 0)};
}

TimedGroup::TimedGroup(std::size_t size, std::size_t observation_bytes, StepTime time)
    : size_(size), time_(time) {
  spec_.observation = {batchrpc::ElementType::uint8,
                       {static_cast<std::int64_t>(observation_bytes)}};
  spec_.actions = 2;
}

void TimedGroup::reset(std::span<const std::uint32_t> /*which*/,
                       std::span<const std::uint64_t> /*seeds*/,
                       std::span<std::byte> observations) {
  std::ranges::fill(observations, std::byte{0});
}

void TimedGroup::step(std::span<const std::byte> /*actions*/,
                      std::span<const std::uint8_t> /*resting*/, const batchrpc::StepRows& rows) {
  if (time_.rounds == 0) {
    std::this_thread::sleep_for(time_.sleep);
  } else {
    state_ = compute(state_, time_.rounds) | 1;
  }
  std::ranges::fill(rows.observations, static_cast<std::byte>(state_ & 1));
  std::ranges::fill(rows.rewards, 1.0F);
  std::ranges::fill(rows.terminated, std::uint8_t{0});
  std::ranges::fill(rows.truncated, std::uint8_t{0});
}

}  // namespace env_benchmark
