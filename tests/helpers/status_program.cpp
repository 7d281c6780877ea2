// A small group with something of all that a status page shows: an agent whose batcher three
// observers call all the time, objects behind references, and an error now and then. Prints where
// the agent's page is, and ends when its input does.
//
//   status_program [ADDRESS [FUNCTION [TOKEN [CERTIFICATE KEY]]]]
//
// FUNCTION is the name of one that fails with an error of that text; none if it is empty.

#include <atomic>
#include <batchrpc/status.hpp>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rpc = batchrpc;
using namespace std::chrono_literals;

namespace cartpole {

int run_episode(int steps) {
  std::this_thread::sleep_for(std::chrono::milliseconds(steps));
  if (steps % 17 == 0) throw std::runtime_error("the environment has fallen over");
  return steps;
}

struct ReplayBuffer {
  explicit ReplayBuffer(int capacity_in) : capacity(capacity_in) {}
  int capacity;
};

// Calls the agent as an observer does.
class Observer {
 public:
  Observer(int rank, const std::string& agent, std::string failing)
      : node_({.name = "observer" + std::to_string(rank),
               .rank = rank,
               .join = agent,
               .logging = {.level = rpc::LogLevel::error}}),
        failing_(std::move(failing)),
        thread_([this, rank] { play(rank); }) {
    node_.expose<&run_episode>();
    node_.expose_class<ReplayBuffer(int)>();
  }
  ~Observer() {
    over_ = true;
    thread_.join();
  }
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

 private:
  void play(int rank) {
    for (int step = 0; !over_; ++step) {
      try {
        if (!failing_.empty() && step % 50 == 1) node_.call<void()>("agent", failing_).get();
        (void)node_.call<int(int)>("agent", "select_action", step).get();
        if (step % 50 == 0) node_.call<void(int)>("agent", "report", step).get();
      } catch (const rpc::Error&) {
        if (over_) return;
      }
      std::this_thread::sleep_for(1ms * rank);
    }
  }

  std::atomic<bool> over_{false};
  rpc::Node node_;
  const std::string failing_;
  std::thread thread_;
};

}  // namespace cartpole

using namespace cartpole;

int main(int argc, char** argv) {
  const auto argument = [&](int number, const char* otherwise) {
    return std::string(argc > number ? argv[number] : otherwise);
  };
  rpc::Node agent({.name = "agent",
                   .join = "tcp://127.0.0.1:0",
                   .status = rpc::status_page({.address = argument(1, "127.0.0.1:0"),
                                               .token = argument(3, ""),
                                               .certificate = argument(4, ""),
                                               .key = argument(5, "")}),
                   .logging = {.level = rpc::LogLevel::error}});
  const rpc::Batcher<int(int)> select_action({.max_size = 3, .max_wait = 1ms},
                                             [](const std::vector<int>& states) {
                                               std::this_thread::sleep_for(200us);
                                               return states;
                                             });
  agent.expose("select_action", select_action);
  agent.expose("report", [](int) {});
  const std::string failing = argument(2, "");
  if (!failing.empty()) agent.expose(failing, [failing] { throw std::runtime_error(failing); });

  std::vector<std::unique_ptr<Observer>> observers;
  for (int rank = 1; rank <= 3; ++rank)
    observers.push_back(std::make_unique<Observer>(rank, agent.address(), failing));
  std::vector<rpc::RRef<ReplayBuffer>> buffers;
  for (int i = 0; i < 4; ++i)
    buffers.push_back(agent.create<ReplayBuffer(int)>("observer" + std::to_string(1 + i % 3), 100));
  const auto own = agent.own(std::make_shared<ReplayBuffer>(7));

  std::atomic<bool> over{false};
  std::thread learner([&] {
    const std::vector<std::string> names{"observer1", "observer2", "observer3"};
    for (int episode = 0; !over; ++episode) {
      auto episodes = agent.each(names).call<&run_episode>(10 + episode % 40);
      for (auto& one : episodes) {
        try {
          (void)one.get();
        } catch (const rpc::Error&) {  // for the page to show
        }
      }
    }
  });
  std::cout << "status page at " << agent.status_address() << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  over = true;
  learner.join();
}
