#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "batchrpc/base/export.hpp"
#include "batchrpc/env/env.hpp"

namespace batchrpc {

/// The memory for the results of a step of k environments. Row i belongs to environment i.
struct StepRows {
  std::span<std::byte> observations{};   ///< [k, …], in the form of EnvSpec::observation
  std::span<float> rewards{};            ///< [k]
  std::span<std::uint8_t> terminated{};  ///< [k], 0 or 1; as EnvStep has it
  std::span<std::uint8_t> truncated{};   ///< [k], 0 or 1
};

/// Environments that one thread steps together. Implement it for a simulator that steps many at
/// once; group_of() makes one from single environments. One thread at a time uses it, but not
/// always the same one.
class BATCHRPC_EXPORT EnvGroup {
 public:
  virtual ~EnvGroup();

  /// The spec of each of its environments. It never changes.
  [[nodiscard]] virtual const EnvSpec& spec() const noexcept = 0;
  /// The number of environments, k. It never changes.
  [[nodiscard]] virtual std::size_t size() const noexcept = 0;

  /// Begins an episode in each of the environments `which`, ascending, and writes its first
  /// observation into its row of `observations` [k, …]. With `seeds`, one for each of them,
  /// everything random from now on comes from the seed. Without seeds the environments continue
  /// their random sequences.
  virtual void reset(std::span<const std::uint32_t> which, std::span<const std::uint64_t> seeds,
                     std::span<std::byte> observations) = 0;
  /// Takes the actions [k, …], which the spec allows, and fills the rows. Environments whose
  /// `resting` [k] is not 0 are reset next: their actions and rows are ignored.
  virtual void step(std::span<const std::byte> actions, std::span<const std::uint8_t> resting,
                    const StepRows& rows) = 0;
};

/// Makes a group of `size` environments.
using EnvGroupFactory = std::function<std::unique_ptr<EnvGroup>(std::size_t size)>;

/// Makes groups of single environments, stepped one after the other. A group whose environments
/// have different specs throws InvalidArgument when it is made.
[[nodiscard]] BATCHRPC_EXPORT EnvGroupFactory group_of(EnvFactory make);

}  // namespace batchrpc
