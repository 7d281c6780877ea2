// What is told of workers between two updates.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "ppo/workers.hpp"

namespace batchrpc_examples::ppo {
namespace worker_changes_test {

using State = batchrpc::VectorEnv::WorkerState;
using Lines = std::vector<std::string>;

const State kLive{.name = "worker1"};
const State kLost{.name = "worker1",
                  .live = false,
                  .opening = true,
                  .losses = 1,
                  .last_loss = "worker1 is lost: it is gone"};

State refused(std::size_t refusals, const std::string& why) {
  return {.name = "worker1",
          .live = false,
          .losses = 1,
          .refusals = refusals,
          .last_loss = "worker1 is lost: " + why};
}

TEST_CASE("A worker that is lost is told, and that it is back, each once") {
  State back = kLost;
  back.live = true;
  back.opening = false;
  CHECK(worker_changes({}, {kLive}).empty());
  CHECK(worker_changes({kLive}, {kLive}).empty());
  CHECK(worker_changes({kLive}, {kLost}) == Lines{"worker1 is lost: it is gone"});
  CHECK(worker_changes({kLive, kLive}, {kLost, kLive}) ==
        Lines{"worker1 is lost: it is gone; the others continue"});
  CHECK(worker_changes({kLost}, {kLost}).empty());
  CHECK(worker_changes({kLost}, {back}) == Lines{"worker1 is back"});
  CHECK(worker_changes({back}, {back}).empty());
  CHECK(worker_changes({kLive}, {back}) ==
        Lines{"worker1 is lost: it is gone; the others continue", "worker1 is back"});
}

TEST_CASE("A worker that is refused is told, also when it came and was refused between two looks") {
  const Lines told{"worker1 is lost: others; start it with the agent's options"};
  CHECK(worker_changes({kLost}, {refused(1, "others")}) == told);
  const State threw = refused(0, "it threw");  // nobody waits for it
  CHECK(worker_changes({kLive}, {threw}) == Lines{"worker1 is lost: it threw"});
  CHECK(worker_changes({threw}, {threw}).empty());
  CHECK(worker_changes({threw}, {refused(1, "others")}) == told);
  CHECK(worker_changes({refused(1, "others")}, {refused(1, "others")}).empty());
  CHECK(worker_changes({refused(1, "others")}, {refused(2, "others")}) == told);  // once more
  CHECK(worker_changes({kLive}, {refused(1, "others")}) == told);  // and was lost before
}

}  // namespace worker_changes_test
}  // namespace batchrpc_examples::ppo
