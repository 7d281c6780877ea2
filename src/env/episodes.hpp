#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "batchrpc/env/autoreset.hpp"
#include "batchrpc/env/env_group.hpp"
#include "env/step_messages.hpp"

namespace batchrpc::env {

/// The memory for a group's results in a step.
struct EpisodeRows {
  std::span<std::byte> observations{};  ///< [m, …]
  std::span<float> rewards{};           ///< [m]
  std::span<std::uint8_t> flags{};      ///< [m]
  std::uint32_t first_row = 0;          ///< among all rows of the message
};

/// The episodes that ended during a group's steps, in the order of their rows.
struct EpisodeEnds {
  std::vector<EpisodeEnd> episodes{};
  std::vector<std::uint32_t> final_rows{};
  std::vector<std::byte> final_observations{};
};

/// A group whose environments are reset automatically when an episode has ended. One thread at a
/// time uses it.
class Episodes {
 public:
  Episodes(std::unique_ptr<EnvGroup> group, Autoreset autoreset);

  [[nodiscard]] const EnvSpec& spec() const noexcept { return group_->spec(); }
  [[nodiscard]] std::size_t size() const noexcept { return resting_.size(); }
  /// Whether the next step ignores the action of environment i, because it resets it.
  [[nodiscard]] bool rests(std::size_t i) const noexcept { return resting_[i] != 0; }

  /// Begins an episode in each environment; environment i is seeded with `seed` + i, if given.
  void begin(std::optional<std::uint64_t> seed, const EpisodeRows& rows);
  /// Takes a step and adds ended episodes to `ends`.
  void step(std::span<const std::byte> actions, const EpisodeRows& rows, EpisodeEnds& ends);

 private:
  void keep_final(std::size_t i, const EpisodeRows& rows, EpisodeEnds& ends) const;

  const std::unique_ptr<EnvGroup> group_;
  const Autoreset autoreset_;
  const std::size_t observation_bytes_;
  std::vector<std::uint8_t> resting_;  // for next_step: the next step resets it
  std::vector<double> total_rewards_;
  std::vector<std::uint32_t> lengths_;
  std::vector<std::uint8_t> terminated_;
  std::vector<std::uint8_t> truncated_;
  std::vector<std::uint32_t> to_reset_;
};

}  // namespace batchrpc::env
