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

/// What a VectorEnv and its workers say to each other: four remote functions, whose names begin
/// with the service's.
namespace batchrpc::env {

/// Which environments of a worker a call is about.
struct SessionId {
  std::uint64_t worker = 0;  ///< differs between two EnvWorkers, also of one name
  std::uint64_t number = 0;  ///< how often that one was opened

  friend bool operator==(const SessionId&, const SessionId&) = default;
};

/// What a driver wants of a worker.
struct OpenRequest {
  std::uint32_t buffers = 1;
  std::uint32_t envs = 1;  ///< of each buffer
  Autoreset autoreset = Autoreset::next_step;
};

struct OpenReply {
  SessionId session{};            ///< which later calls name
  std::uint64_t incarnation = 0;  ///< of the worker's node
  EnvSpec spec{};
  std::optional<std::uint32_t> extras{};  ///< of the worker's policy; none: it has none
};

inline constexpr std::uint8_t kTerminated = 1;
inline constexpr std::uint8_t kTruncated = 2;
inline constexpr std::uint8_t kStarted = 4;

struct EpisodeEnd {
  std::uint32_t row = 0;
  std::uint32_t length = 0;
  double total_reward = 0;
};

/// Of n steps of k environments; the rows are n · k. The observations are first, so that they are
/// the first payload.
struct StepReply {
  Bytes observations{};                     ///< [n, k, …]
  std::vector<float> rewards{};             ///< [n, k]
  std::vector<std::uint8_t> flags{};        ///< [n, k]
  std::vector<std::uint32_t> final_rows{};  ///< ascending
  Bytes final_observations{};               ///< [F, …]
  std::vector<EpisodeEnd> episodes{};       ///< in the order of their rows
  Bytes actions{};                          ///< [n, k, …], of rollouts
  std::vector<float> extras{};              ///< [n, k, e], of rollouts
  std::vector<std::uint64_t> versions{};    ///< [n], of rollouts
};

using OpenFunction = OpenReply(OpenRequest);
/// Session, buffer, and the seed of its first environment, of which the others count on.
using ResetFunction = Future<StepReply>(SessionId, std::uint32_t, std::optional<std::uint64_t>);
/// Session, buffer, steps, actions [n, k, …]; none: the worker's policy chooses them.
using StepFunction = Future<StepReply>(SessionId, std::uint32_t, std::uint32_t, Bytes);
/// Session, weights and their version.
using PolicyFunction = void(SessionId, Bytes, std::uint64_t);

inline std::string open_name(const std::string& service) { return service + ".open"; }
inline std::string reset_name(const std::string& service) { return service + ".reset"; }
inline std::string step_name(const std::string& service) { return service + ".step"; }
inline std::string policy_name(const std::string& service) { return service + ".policy"; }

}  // namespace batchrpc::env
