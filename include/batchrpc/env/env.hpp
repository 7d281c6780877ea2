#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "batchrpc/base/export.hpp"
#include "batchrpc/env/array_spec.hpp"

namespace batchrpc {

/// What an environment takes and gives; the same for all environments of one VectorEnv.
struct EnvSpec {
  ArraySpec observation{};                   ///< of one environment
  ArraySpec action{ElementType::int64, {}};  ///< for one environment
  /// Of discrete actions how many there are: each element of an action is 0 to so many - 1. Zero:
  /// the actions are numbers between action_low and action_high.
  std::int64_t actions = 0;
  double action_low = -1;  ///< of actions that are not discrete; may be infinite
  double action_high = 1;  ///< the same

  friend bool operator==(const EnvSpec&, const EnvSpec&) = default;
};

/// Such as "observation float32 [4], action int64 [] of 2".
[[nodiscard]] BATCHRPC_EXPORT std::string to_string(const EnvSpec& spec);
/// Throws InvalidArgument unless the spec is usable: some observation, integers for discrete
/// actions, a range that is not empty.
BATCHRPC_EXPORT void require_usable(const EnvSpec& spec);

/// What came of a step, beside the observation. As in Gymnasium, `terminated` is the end that
/// belongs to the task (what comes after is worth nothing), `truncated` an end from outside, such
/// as a limit of steps (what comes after has a value); both may be set.
struct EnvStep {
  float reward = 0;         ///< of this step
  bool terminated = false;  ///< the task has ended
  bool truncated = false;   ///< it was ended from outside

  /// Whether a reset() comes next.
  [[nodiscard]] bool ended() const noexcept { return terminated || truncated; }
};

/// An environment as Gymnasium has it. Used by one thread at a time, not always the same.
class BATCHRPC_EXPORT Env {
 public:
  virtual ~Env();

  /// Does not change while the environment lives.
  [[nodiscard]] virtual const EnvSpec& spec() const noexcept = 0;
  /// Begins an episode and writes its first observation. All that is random from now on comes from
  /// `seed`; without one it goes on from where it is.
  virtual void reset(std::optional<std::uint64_t> seed, std::span<std::byte> observation) = 0;
  /// Takes an action, which the spec allows, and writes the observation after it. Never called
  /// after the end of an episode and before a reset().
  [[nodiscard]] virtual EnvStep step(std::span<const std::byte> action,
                                     std::span<std::byte> observation) = 0;
};

/// Makes an environment; called once for each, one after the other.
using EnvFactory = std::function<std::unique_ptr<Env>()>;

/// The elements of an array of bytes, for environments and those who read their batches. T is the
/// type of the elements; the bytes are aligned for it.
/// @{
template <class T>
[[nodiscard]] std::span<T> elements_of(std::span<std::byte> bytes) noexcept {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}
template <class T>
[[nodiscard]] std::span<const T> elements_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}
/// @}

}  // namespace batchrpc
