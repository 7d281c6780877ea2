#pragma once

#include <batchrpc/env.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace env_benchmark {

/// What a step of a group does with its time.
struct StepTime {
  std::chrono::nanoseconds sleep{};  ///< zero: it computes
  std::uint64_t rounds = 0;          ///< of a computation; the same work wherever it runs
};

/// A step that takes so long on this machine, when nothing else runs.
StepTime make_step_time(double milliseconds, bool computes);

/// Environments that a step of all of them together takes that time; observations of so many bytes,
/// which each step writes, two actions. No episode ends.
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
