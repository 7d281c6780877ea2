#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "kept_thing.hpp"

// keeping_node NAME ADDRESS SEED: makes, passes on and drops remote references until it is killed.
int main(int argc, char** argv) {
  if (argc != 4) return 2;
  batchrpc::NodeOptions options;
  options.name = argv[1];
  options.rank = -1;
  options.join = argv[2];
  options.logging.level = batchrpc::LogLevel::off;
  options.liveness.dead_after = std::chrono::seconds(1);
  options.liveness.ping_after = std::chrono::milliseconds(100);
  const batchrpc::Node node(options);
  const auto keeper = std::make_shared<kept::Keeper>(node, std::stoull(argv[3]));
  keeper->expose();
  std::cout << "joined" << std::endl;
  while (keeper->wrong().empty()) {
    for (int i = 0; i < 20; ++i)
      keeper->act();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::cout << keeper->wrong() << std::endl;
  return 3;
}
