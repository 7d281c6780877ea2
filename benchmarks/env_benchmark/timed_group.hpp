#pragma once

#include <batchrpc/env.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace env_benchmark {

/// How a step of a group spends its time.
struct StepTime {
  std::chrono::nanoseconds sleep{};  ///< zero: it computes
  std::uint64_t rounds = 0;          ///< of a computation; the same work on every machine
};

/// Makes a step that takes this long on this machine if nothing else runs.
StepTime make_step_time(double milliseconds, bool computes);

/// Environments whose common step takes that time. Each step writes observations of the given size.
/// There are two actions, and no episode ends.
class TimedGroup final : public batchrpc::EnvGroup {
 public:
  TimedGroup(std::size_t size, std::size_t observation_bytes, StepTime time);

  [[nodiscard]] const batchrpc::EnvSpec& spec() const noexcept override { return spec_; }
  [[nodiscard]] std::size_t size() const noexcept override { return size_; }
  void reset(std::span<const std::uint32_t> which, std::span<const std::uint64_t> seeds,
             std::span<std::byte> observations) override;
  void step(std::span<const std::byte> actions, std::span<const std::uint8_t> resting,
            const batchrpc::StepRows& rows) override;

 private:
  const std::size_t size_;
  const StepTime time_;
  batchrpc::EnvSpec spec_;
  std::uint64_t state_ = 1;
};

}  // namespace env_benchmark
