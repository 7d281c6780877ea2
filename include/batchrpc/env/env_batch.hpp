#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/env/env.hpp"

namespace batchrpc {

/// The results that a VectorEnv has received: G groups, n steps of k environments each. A group is
/// the environments of one worker and one buffer. Row (g · n + s) · k + i belongs to group g, step
/// s and environment i of the group. n is 1 unless you asked for more steps; then the row is g · k
/// + i.
///
/// The holder owns all of it. Observations are not copied: two batches may share a block of memory,
/// but no row is in both.
struct EnvBatch {
  std::size_t groups = 0;                 ///< G
  std::size_t steps = 1;                  ///< n
  std::size_t envs = 0;                   ///< k
  std::shared_ptr<const EnvSpec> spec{};  ///< the spec of all environments

  /// [G, n, k, …]: the observation after each step; zeros in rows that are not valid. It is aligned
  /// for its elements and no further, since batches may share one block of memory, which lives as
  /// long as one of them does. For the ends of episodes see Autoreset.
  Bytes observations{};
  std::vector<float> rewards{};            ///< [G, n, k]
  std::vector<std::uint8_t> terminated{};  ///< [G, n, k], 0 or 1
  std::vector<std::uint8_t> truncated{};   ///< [G, n, k], 0 or 1
  /// [G, n, k], 0 or 1: the observation is an episode's first, and no action led to it. This is so
  /// after reset(), after a worker was replaced, and after an end with Autoreset::next_step.
  std::vector<std::uint8_t> started{};
  /// [G, n, k], 0 or 1: whether the row exists. Rows are missing if their worker was lost, or if
  /// their group was not sent and came in an earlier batch.
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
    std::size_t row = 0;       ///< the row of its last step
    std::int64_t env = 0;      ///< one of env_ids
    double total_reward = 0;   ///< not discounted
    std::uint32_t length = 0;  ///< in steps
  };
  std::vector<Episode> episodes{};  ///< ordered by row

  /// For rollouts: the action that the worker's policy chose before each step, the policy's extra
  /// values (WorkerPolicy::extras), and the version of its weights. Empty otherwise.
  /// @{
  Bytes actions{};                        ///< [G, n, k, …]
  std::vector<float> extras{};            ///< [G, n, k, e]
  std::vector<std::uint64_t> versions{};  ///< [G, n]
  /// @}

  /// The worker and buffer of a group.
  struct Group {
    std::uint32_t worker = 0;  ///< its place in VectorEnvOptions::workers
    std::uint32_t buffer = 0;  ///< 0 to VectorEnvOptions::buffers - 1
    /// Differs between the environments before and after a loss. Zero: the batch has no valid rows
    /// of the group, and sending it steps none of the group's environments.
    std::uint64_t session = 0;
    std::uint64_t turn = 0;  ///< differs for each request to the group
  };
  std::vector<Group> sources{};  ///< [G]

  /// The number of rows, G · n · k.
  [[nodiscard]] std::size_t rows() const noexcept { return groups * steps * envs; }
};

}  // namespace batchrpc
