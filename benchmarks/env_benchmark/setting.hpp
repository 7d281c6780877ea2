#pragma once

#include <batchrpc/call/node_options.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "common/meeting_place.hpp"

namespace env_benchmark {

inline constexpr std::size_t kMachineLanes = 48;                ///< of machines that are simulated
inline constexpr std::size_t kMostEnvs = std::size_t{1} << 20;  ///< of a worker

/// How the driver waits.
enum class Mode : unsigned char {
  sync,  ///< step_wait(): for all workers
  recv,  ///< recv(): for whichever are ready
};
inline const char* word(Mode mode) { return mode == Mode::sync ? "sync" : "recv"; }

/// Workers, and how they are driven.
struct Setting {
  std::size_t workers = 16;
  std::size_t envs_per_worker = 6;  ///< of a buffer
  std::size_t lanes = 6;            ///< of a worker
  double step_ms = 1;               ///< of a group
  std::size_t observation_bytes = 16;
  bool computes = false;  ///< or sleeps
  double seconds = 2;
  batchrpc_examples::TransportChoice transport = batchrpc_examples::TransportChoice::automatic;

  [[nodiscard]] std::size_t group_envs() const { return envs_per_worker / lanes; }
  /// Steps of environments in a second, were a step all that takes time.
  [[nodiscard]] double ideal() const {
    return static_cast<double>(workers * envs_per_worker) / (step_ms / 1e3);
  }
  /// Of observations, in what a worker answers.
  [[nodiscard]] std::size_t message_bytes() const { return envs_per_worker * observation_bytes; }

  friend bool operator==(const Setting&, const Setting&) = default;
};

struct Variant {
  Mode mode = Mode::sync;
  std::size_t buffers = 1;
};

/// What a round of a setting has shown; rates are steps of environments in a second.
struct Measured {
  double steps_per_second = 0;
  double messages_per_second = 0;
  double driver_cpus = 0;  ///< CPU time of the driver's process in a second
};

}  // namespace env_benchmark
