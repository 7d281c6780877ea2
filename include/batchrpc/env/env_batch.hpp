#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/env/env.hpp"

namespace batchrpc {

/// What a VectorEnv has received: of G groups, n steps of k environments each. A group is the
/// environments of one worker and one buffer. Row (g · n + s) · k + i is of group g, step s,
/// environment i of the group; n is 1 unless more were asked for, and then row g · k + i.
///
/// All of it belongs to who has it. Without a copy of the observations: two batches may share
/// memory, no row of which is in both.
struct EnvBatch {
  std::size_t groups = 0;                 ///< G
  std::size_t steps = 1;                  ///< n
  std::size_t envs = 0;                   ///< k
  std::shared_ptr<const EnvSpec> spec{};  ///< of all environments

  /// [G, n, k, …]: after each step. Zeros in rows that are not valid. Aligned for its elements; of
  /// more than that nothing is promised, since batches may lie in one block of memory, which lives
  /// as long as one of them does. Where an episode has ended see Autoreset.
  Bytes observations{};
  std::vector<float> rewards{};            ///< [G, n, k]
  std::vector<std::uint8_t> terminated{};  ///< [G, n, k], 0 or 1
  std::vector<std::uint8_t> truncated{};   ///< [G, n, k], 0 or 1
  /// [G, n, k], 0 or 1: the observation is an episode's first and nothing else, no action has led
  /// to it: after reset(), after a worker was replaced, and after an end with Autoreset::next_step.
  std::vector<std::uint8_t> started{};
  /// [G, n, k], 0 or 1: whether there is such a row. Not of a worker that was lost, and not of a
  /// group that was not sent and is still with the caller, whose rows came in an earlier batch.
  std::vector<std::uint8_t> valid{};
  std::vector<std::int64_t> env_ids{};  ///< [G, k]: 0 to VectorEnv::size() - 1

  /// With Autoreset::same_step: the last observations of episodes that have ended, [F, …], and
  /// their rows, ascending.
  /// @{
  Bytes final_observations{};
  std::vector<std::size_t> final_rows{};
  /// @}

  /// An episode that has ended.
  struct Episode {
    std::size_t row = 0;       ///< of its last step
    std::int64_t env = 0;      ///< one of env_ids
    double total_reward = 0;   ///< not discounted
    std::uint32_t length = 0;  ///< in steps
  };
  std::vector<Episode> episodes{};  ///< in the order of their rows

  /// Of rollouts: what the worker's policy has chosen before each step, what it gave beside that
  /// (WorkerPolicy::extras), and the version of its weights. Empty otherwise.
  /// @{
  Bytes actions{};                        ///< [G, n, k, …]
  std::vector<float> extras{};            ///< [G, n, k, e]
  std::vector<std::uint64_t> versions{};  ///< [G, n]
  /// @}

  /// Of which worker and buffer a group is.
  struct Group {
    std::uint32_t worker = 0;  ///< its place in VectorEnvOptions::workers
    std::uint32_t buffer = 0;  ///< 0 to VectorEnvOptions::buffers - 1
    /// Differs between the environments before and after a loss. Zero: the batch has no rows of it
    /// that are valid, and steps nothing of it.
    std::uint64_t session = 0;
    std::uint64_t turn = 0;  ///< differs between what the group was asked for at different times
  };
  std::vector<Group> sources{};  ///< [G]

  /// G · n · k.
  [[nodiscard]] std::size_t rows() const noexcept { return groups * steps * envs; }
};

}  // namespace batchrpc
