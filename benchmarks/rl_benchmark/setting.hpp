#pragma once

#include <batchrpc/call/node_options.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/meeting_place.hpp"

namespace rl_benchmark {

/// When the agent runs the policy on a batch.
enum class Gather : unsigned char {
  all,   ///< when every one of its observers has sent a request, as in the original
  idle,  ///< as soon as it is idle, with the requests that arrived while it was busy
};

/// The settings of one run: one value for each argument.
struct Setting {
  int world_size = 10;  ///< a coordinator, the agents, and the observers
  std::string master_addr = "127.0.0.1";
  int master_port = 29501;
  bool batch = true;
  std::vector<std::int64_t> state_size{10, 20, 10};
  int nlayers = 5;  ///< hidden layers after the first one
  int out_features = 10;

  int agents = 1;
  int episodes = 10;  ///< the first one is for warming up
  int steps = 100;    ///< of each observer in an episode
  batchrpc_examples::TransportChoice transport = batchrpc_examples::TransportChoice::automatic;
  int num_worker_threads = 0;  ///< 0: the policy runs where requests are read
  std::chrono::microseconds max_wait{};
  Gather gather = Gather::all;
  std::chrono::microseconds busy_poll{1000};
  bool inference = false;  ///< the policy runs without gradient tracking
  std::uint64_t seed = 0;

  [[nodiscard]] int observers() const { return world_size - 1 - agents; }
};

}  // namespace rl_benchmark
