#include "common/worker_end.hpp"

#include <batchrpc/batchrpc.hpp>
#include <batchrpc/testing.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>

namespace batchrpc_examples {
namespace worker_end_test {

namespace rpc = batchrpc;
using namespace std::chrono_literals;

// An employer and a worker, which know each other.
struct World {
  World()
      : employer(std::make_unique<rpc::Node>(world.options("agent"))),
        worker(world.options("worker")) {
    worker.wait_for_peer("agent").get();
    employer->wait_for_peer("worker").get();
  }
  rpc::SimulatedWorld world;
  std::unique_ptr<rpc::Node> employer;
  rpc::Node worker;
};

TEST_CASE("a worker ends when it is told to finish, and being told twice is as once") {
  World world;
  WorkerEnd end(world.worker, "agent");
  finish_workers(*world.employer, {"worker"}, 1s);
  finish_workers(*world.employer, {"worker", "nobody"}, 1s);
  end.wait();
  CHECK(end.is_over());
}

TEST_CASE("a worker ends when the one that it works for leaves, and not with another's end") {
  World world;
  auto other = std::make_unique<rpc::Node>(world.world.options("other"));
  world.worker.wait_for_peer("other").get();
  WorkerEnd end(world.worker, "agent");
  other.reset();
  world.world.run_for(1min);
  CHECK_FALSE(end.is_over());
  world.employer.reset();
  world.world.run_until([&] { return end.is_over(); });
  CHECK(end.is_over());
}

TEST_CASE("a worker ends at once where the one that it works for was lost before") {
  World world;
  world.employer.reset();
  world.world.run_for(1min);
  WorkerEnd end(world.worker, "agent");
  CHECK(end.is_over());
}

}  // namespace worker_end_test
}  // namespace batchrpc_examples
