#pragma once

#include <batchrpc/call/node_options.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "common/meeting_place.hpp"

namespace env_benchmark {

inline constexpr std::size_t kMachineLanes = 48;                ///< of a simulated machine
inline constexpr std::size_t kMostEnvs = std::size_t{1} << 20;  ///< of a worker

/// How the driver waits.
enum class Mode : unsigned char {
  sync,  ///< step_wait(): waits for all workers
  recv,  ///< recv(): waits for any worker
};
inline const char* word(Mode mode) { return mode == Mode::sync ? "sync" : "recv"; }

/// The workers and how they are driven.
struct Setting {
  std::size_t workers = 16;
  std::size_t envs_per_worker = 6;  ///< per buffer
  std::size_t lanes = 6;            ///< per worker
  double step_ms = 1;               ///< per group
  std::size_t observation_bytes = 16;
  bool computes = false;  ///< else sleeps
  double seconds = 2;
  batchrpc_examples::TransportChoice transport = batchrpc_examples::TransportChoice::automatic;

  [[nodiscard]] std::size_t group_envs() const { return envs_per_worker / lanes; }
  /// Environment steps per second if only the steps took time.
  [[nodiscard]] double ideal() const {
    return static_cast<double>(workers * envs_per_worker) / (step_ms / 1e3);
  }
  /// The bytes of observations in a worker's answer.
  [[nodiscard]] std::size_t message_bytes() const { return envs_per_worker * observation_bytes; }

  friend bool operator==(const Setting&, const Setting&) = default;
};

struct Variant {
  Mode mode = Mode::sync;
  std::size_t buffers = 1;
};

/// The results of a round of a setting. Rates are environment steps per second.
struct Measured {
  double steps_per_second = 0;
  double messages_per_second = 0;
  double driver_cpus = 0;  ///< CPU seconds of the driver's process per second
};

}  // namespace env_benchmark
