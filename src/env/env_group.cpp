#include "batchrpc/env/env_group.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"

namespace batchrpc {

EnvGroup::~EnvGroup() = default;

namespace {

class SingleEnvs final : public EnvGroup {
 public:
  explicit SingleEnvs(std::vector<std::unique_ptr<Env>> envs)
      : envs_(std::move(envs)),
        spec_(envs_.front()->spec()),
        observation_bytes_(spec_.observation.bytes()),
        action_bytes_(spec_.action.bytes()) {}

  [[nodiscard]] const EnvSpec& spec() const noexcept override { return spec_; }
  [[nodiscard]] std::size_t size() const noexcept override { return envs_.size(); }

  void reset(std::span<const std::uint32_t> which, std::span<const std::uint64_t> seeds,
             std::span<std::byte> observations) override {
    for (std::size_t i = 0; i < which.size(); ++i) {
      const auto seed = seeds.empty() ? std::nullopt : std::optional(seeds[i]);
      envs_[which[i]]->reset(seed, row(observations, which[i]));
    }
  }

  void step(std::span<const std::byte> actions, std::span<const std::uint8_t> resting,
            const StepRows& rows) override {
    for (std::size_t i = 0; i < envs_.size(); ++i) {
      if (resting[i] != 0) continue;
      const EnvStep step = envs_[i]->step(actions.subspan(i * action_bytes_, action_bytes_),
                                          row(rows.observations, i));
      rows.rewards[i] = step.reward;
      rows.terminated[i] = step.terminated ? 1 : 0;
      rows.truncated[i] = step.truncated ? 1 : 0;
    }
  }

 private:
  [[nodiscard]] std::span<std::byte> row(std::span<std::byte> observations, std::size_t i) const {
    return observations.subspan(i * observation_bytes_, observation_bytes_);
  }

  const std::vector<std::unique_ptr<Env>> envs_;
  const EnvSpec spec_;
  const std::size_t observation_bytes_;
  const std::size_t action_bytes_;
};

}  // namespace

EnvGroupFactory group_of(EnvFactory make) {
  return [make = std::move(make)](std::size_t size) -> std::unique_ptr<EnvGroup> {
    if (size == 0) throw InvalidArgument("a group needs at least one environment");
    std::vector<std::unique_ptr<Env>> envs;
    envs.reserve(size);
    for (std::size_t i = 0; i < size; ++i) {
      envs.push_back(make());
      if (envs.back() == nullptr)
        throw InvalidArgument("the factory returned no environment (a null pointer)");
      require_usable(envs.back()->spec());
      if (envs.back()->spec() != envs.front()->spec()) {
        throw InvalidArgument("the environments of a group differ: one has " +
                              to_string(envs.front()->spec()) + ", another " +
                              to_string(envs.back()->spec()));
      }
    }
    return std::make_unique<SingleEnvs>(std::move(envs));
  };
}

}  // namespace batchrpc
