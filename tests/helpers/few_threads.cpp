#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/env.hpp"

// A program of a user that may have few threads, for tests. It prints what it reached, or the error
// of the library, and exits with 3 for any other error. Needs root, to become that user.
//
//   few_threads LIMIT node|lanes|end

namespace rpc = batchrpc;

int main(int argc, char** argv) try {
  using namespace std::chrono_literals;
  if (argc != 3) return 2;
  const auto user = static_cast<uid_t>(30000 + ::getpid() % 20000);  // it has no other threads
  if (::setgid(user) != 0 || ::setuid(user) != 0) return 4;
  const rlimit few{.rlim_cur = static_cast<rlim_t>(std::atoi(argv[1])),
                   .rlim_max = 1000};  // NOLINT
  ::setrlimit(RLIMIT_NPROC, &few);
  const std::string what = argv[2];
  rpc::NodeOptions options{.name = "n", .num_worker_threads = 3};
  options.transports = {rpc::unix_transport()};
  if (what == "node") {
    const rpc::Node node(options);
  } else if (what == "lanes") {
    (void)rpc::thread_lanes(4);
  } else {  // its last handle is dropped on one of its threads
    auto node = std::make_unique<rpc::Node>(options);
    auto function = std::make_shared<int>();  // goes with the node
    const std::weak_ptr<int> alive = function;
    node->expose("alive", [function = std::move(function)] {});
    node->expose("end", [&node] { node.reset(); });
    node->peer("n").notify<void()>("end");
    std::this_thread::sleep_for(300ms);  // it cannot end yet where there are no threads
    const rlimit enough{.rlim_cur = 1000, .rlim_max = 1000};
    ::setrlimit(RLIMIT_NPROC, &enough);
    while (!alive.expired())
      std::this_thread::sleep_for(1ms);
  }
  std::cout << "reached" << std::endl;
  return 0;
} catch (const rpc::Overloaded& error) {
  std::cout << error.what() << std::endl;
  return 0;
} catch (const std::exception& error) {
  std::cout << error.what() << std::endl;
  return 3;
}
