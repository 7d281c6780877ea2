#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/env/autoreset.hpp"
#include "batchrpc/env/env.hpp"
#include "batchrpc/future/future.hpp"

/// The messages between a VectorEnv and its workers: four remote functions, whose names begin with
/// the service's.
namespace batchrpc::env {

/// Identifies the environments that a call is for.
struct SessionId {
  std::uint64_t worker = 0;  ///< differs between two EnvWorkers, even of one name
  std::uint64_t number = 0;  ///< how often that worker was opened

  friend bool operator==(const SessionId&, const SessionId&) = default;
};

/// A driver's request to open a worker.
struct OpenRequest {
  std::uint32_t buffers = 1;
  std::uint32_t envs = 1;  ///< of each buffer
  Autoreset autoreset = Autoreset::next_step;
};

struct OpenReply {
  SessionId session{};            ///< for later calls
  std::uint64_t incarnation = 0;  ///< of the worker's node
  EnvSpec spec{};
  std::optional<std::uint32_t> extras{};  ///< of the worker's policy; empty: it has none
};

inline constexpr std::uint8_t kTerminated = 1;
inline constexpr std::uint8_t kTruncated = 2;
inline constexpr std::uint8_t kStarted = 4;

struct EpisodeEnd {
  std::uint32_t row = 0;
  std::uint32_t length = 0;
  double total_reward = 0;
};

/// The results of n steps of k environments, n · k rows. The observations come first, so that they
/// are the first payload.
struct StepReply {
  Bytes observations{};                     ///< [n, k, …]
  std::vector<float> rewards{};             ///< [n, k]
  std::vector<std::uint8_t> flags{};        ///< [n, k]
  std::vector<std::uint32_t> final_rows{};  ///< ascending
  Bytes final_observations{};               ///< [F, …]
  std::vector<EpisodeEnd> episodes{};       ///< ordered by row
  Bytes actions{};                          ///< [n, k, …], for rollouts
  std::vector<float> extras{};              ///< [n, k, e], for rollouts
  std::vector<std::uint64_t> versions{};    ///< [n], for rollouts
};

using OpenFunction = OpenReply(OpenRequest);
/// Session, buffer, and the seed of the first environment; the others' seeds count up from it.
using ResetFunction = Future<StepReply>(SessionId, std::uint32_t, std::optional<std::uint64_t>);
/// Session, buffer, steps, and actions [n, k, …]; without actions, the worker's policy chooses
/// them.
using StepFunction = Future<StepReply>(SessionId, std::uint32_t, std::uint32_t, Bytes);
/// Session, weights and their version.
using PolicyFunction = void(SessionId, Bytes, std::uint64_t);

inline std::string open_name(const std::string& service) { return service + ".open"; }
inline std::string reset_name(const std::string& service) { return service + ".reset"; }
inline std::string step_name(const std::string& service) { return service + ".step"; }
inline std::string policy_name(const std::string& service) { return service + ".policy"; }

}  // namespace batchrpc::env
