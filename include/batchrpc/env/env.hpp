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

/// The observations and actions of an environment. All environments of one VectorEnv have the same.
struct EnvSpec {
  ArraySpec observation{};                   ///< one environment's
  ArraySpec action{ElementType::int64, {}};  ///< one environment's
  /// The number of discrete actions: each element of an action is 0 to `actions` - 1. Zero: the
  /// actions are numbers between action_low and action_high.
  std::int64_t actions = 0;
  double action_low = -1;  ///< lower bound of actions that are not discrete; may be infinite
  double action_high = 1;  ///< upper bound, likewise

  friend bool operator==(const EnvSpec&, const EnvSpec&) = default;
};

/// Returns a text such as "observation float32 [4], action int64 [] of 2".
[[nodiscard]] BATCHRPC_EXPORT std::string to_string(const EnvSpec& spec);
/// Throws InvalidArgument unless the spec is usable: it has an observation, integers for discrete
/// actions, and a range that is not empty.
BATCHRPC_EXPORT void require_usable(const EnvSpec& spec);

/// The result of a step, without the observation. As in Gymnasium, `terminated` means that the task
/// itself has ended: the states after it are worth nothing. `truncated` means that something
/// outside ended the episode, such as a limit of steps: the states after it have a value. Both may
/// be set.
struct EnvStep {
  float reward = 0;         ///< of this step
  bool terminated = false;  ///< the task has ended
  bool truncated = false;   ///< it was ended from outside

  /// Whether reset() must be called next.
  [[nodiscard]] bool ended() const noexcept { return terminated || truncated; }
};

/// An environment as in Gymnasium. One thread at a time uses it, but not always the same one.
class BATCHRPC_EXPORT Env {
 public:
  virtual ~Env();

  /// The spec never changes during the environment's life.
  [[nodiscard]] virtual const EnvSpec& spec() const noexcept = 0;
  /// Begins an episode and writes its first observation. With a `seed`, everything random from now
  /// on comes from it; without one the environment continues its random sequence.
  virtual void reset(std::optional<std::uint64_t> seed, std::span<std::byte> observation) = 0;
  /// Takes an action that the spec allows and writes the observation after it. After the end of an
  /// episode, reset() is called first.
  [[nodiscard]] virtual EnvStep step(std::span<const std::byte> action,
                                     std::span<std::byte> observation) = 0;
};

/// Makes one environment. It is called once for each, one after the other.
using EnvFactory = std::function<std::unique_ptr<Env>()>;

/// Returns an array's bytes as its elements, for environments and for code that reads their
/// batches. T is the type of the elements; the bytes must be aligned for it.
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
