// Your own environment in two worker processes, and a driver that steps sixteen of them. `walk`
// starts all three. To start them by hand, in any order: `walk driver`, `walk worker 1`, `walk
// worker 2`.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <batchrpc/env.hpp>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace rpc = batchrpc;

// A walk on a line, from 0 to a goal at -5 or 5. Action 0 steps to the left, action 1 to the right;
// one step in ten goes the other way. The observation is [position, goal].
class Walk final : public rpc::Env {
 public:
  const rpc::EnvSpec& spec() const noexcept override { return spec_; }

  void reset(std::optional<std::uint64_t> seed, std::span<std::byte> observation) override {
    if (seed) random_.seed(*seed);
    goal_ = random_() % 2 == 0 ? -5 : 5;
    position_ = 0;
    steps_ = 0;
    write(observation);
  }

  rpc::EnvStep step(std::span<const std::byte> action, std::span<std::byte> observation) override {
    const bool slips = random_() % 10 == 0;
    position_ += (rpc::elements_of<std::int64_t>(action)[0] == 1) != slips ? 1.0F : -1.0F;
    write(observation);
    const bool there = position_ == goal_;
    return {.reward = there ? 1.0F : 0.0F, .terminated = there, .truncated = ++steps_ == 50};
  }

 private:
  void write(std::span<std::byte> observation) const {
    const std::span<float> seen = rpc::elements_of<float>(observation);
    seen[0] = position_;
    seen[1] = goal_;
  }

  rpc::EnvSpec spec_{.observation = {rpc::ElementType::float32, {2}},
                     .action = {rpc::ElementType::int64, {}},
                     .actions = 2};
  std::mt19937_64 random_;
  float goal_ = 0, position_ = 0;
  int steps_ = 0;
};

void work(int number, const std::string& join) {
  const std::string name = "worker" + std::to_string(number);
  rpc::Node node({.name = name, .rank = number, .world_size = 3, .join = join});
  rpc::EnvWorker worker(node, rpc::group_of([] { return std::make_unique<Walk>(); }),
                        {.lanes = rpc::thread_lanes(2)});  // two threads step its environments
  node.shutdown_together();                                // when all three are done
}

void drive(const std::string& join) {
  rpc::Node node({.name = "driver", .rank = 0, .world_size = 3, .join = join});
  rpc::VectorEnv envs(node, {.workers = {"worker1", "worker2"}, .envs_per_worker = 8});
  std::size_t episodes = 0, steps = 0;
  rpc::EnvBatch batch = envs.reset();
  while (episodes < 1000) {
    const auto seen = rpc::elements_of<float>(batch.observations.span());  // [rows, 2]
    std::vector<std::int64_t> actions(batch.rows());                       // one per row
    for (std::size_t row = 0; row < batch.rows(); ++row)
      actions[row] = seen[2 * row] < seen[2 * row + 1] ? 1 : 0;
    envs.step_async(batch, std::as_bytes(std::span(actions)));
    batch = envs.step_wait();
    episodes += batch.episodes.size();
    for (const rpc::EnvBatch::Episode& episode : batch.episodes)
      steps += episode.length;
  }
  std::cout << envs.size() << " environments, " << episodes << " episodes of "
            << static_cast<double>(steps) / static_cast<double>(episodes) << " steps on average\n";
  node.shutdown_together();
}

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  const bool driver = argc > 1 && words[1] == "driver";
  const bool worker = argc > 2 && words[1] == "worker" && (words[2] == "1" || words[2] == "2");
  const std::size_t named = driver ? 2 : 3;
  std::string join = words.size() > named ? words[named] : "tcp://127.0.0.1:29500";
  try {
    if (driver && argc <= 3) {
      drive(join);
    } else if (worker && argc <= 4) {
      work(std::stoi(words[2]), join);
    } else if (argc == 1) {
      join = "unix-abstract:walk-" + std::to_string(::getpid());
      for (int child = 1; child <= 2; ++child) {
        if (::fork() != 0) continue;         // before a node exists, because a node has threads
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // if the driver dies before it has joined
        work(child, join);
        return 0;
      }
      drive(join);
      while (::wait(nullptr) > 0)
        continue;
    } else {
      std::cerr << "usage: walk | walk driver [ADDRESS] | walk worker 1|2 [ADDRESS]\n";
      return 2;
    }
  } catch (const rpc::Error& error) {
    std::cerr << "walk: " << error.what() << '\n';
    return 1;
  }
}
