#pragma once

#include <batchrpc/node/node_options.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace env_benchmark {

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
  bool computes = false;            ///< or sleeps
  double seconds = 2;
  batchrpc::TransportChoice transport = batchrpc::TransportChoice::automatic;

  [[nodiscard]] std::size_t group_envs() const { return envs_per_worker / lanes; }
  /// Steps of environments in a second, were a step all that takes time.
  [[nodiscard]] double ideal() const {
    return static_cast<double>(workers * envs_per_worker) / (step_ms / 1e3);
  }
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
