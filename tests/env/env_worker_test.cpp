// A worker's remote functions, as peers that mean no good would call them.
#include "batchrpc/env/env_worker.hpp"

#include <batchrpc/base/error.hpp>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "env/counting_env.hpp"
#include "env/env_world.hpp"
#include "env/step_messages.hpp"

namespace batchrpc::test {
namespace {

struct OneWorker : EnvWorld {
  OneWorker() : EnvWorld(1) {
    session = driver
                  ->call<env::OpenFunction>("w0", "envs.open",
                                            env::OpenRequest{1, 2, Autoreset::next_step})
                  .get()
                  .session;
  }
  Future<env::StepReply> step(std::uint64_t of_session, std::uint32_t buffer, std::uint32_t steps,
                              std::vector<std::int64_t> actions) {
    return driver->call<env::StepFunction>("w0", "envs.step", of_session, buffer, steps,
                                           Bytes::copy(bytes_of(actions)));
  }
  Future<env::StepReply> reset() {
    return driver->call<env::ResetFunction>("w0", "envs.reset", session, 0U,
                                            std::optional<std::uint64_t>(5));
  }
  std::uint64_t session = 0;
};

TEST_CASE("a worker refuses steps of another session, another buffer, or of the wrong size") {
  OneWorker world;
  world.reset().get();
  CHECK_THROWS_AS(world.step(world.session + 1, 0, 1, {1, 1}).get(), InvalidArgument);
  CHECK_THROWS_WITH(world.step(world.session, 1, 1, {1, 1}).get(), Catch::Contains("no buffer 1"));
  CHECK_THROWS_WITH(world.step(world.session, 0, 1, {1}).get(), Catch::Contains("16 bytes"));
  CHECK_THROWS_AS(world.step(world.session, 0, 0, {1, 1}).get(), InvalidArgument);
  CHECK_THROWS_AS(
      world.step(world.session, 0, std::numeric_limits<std::uint32_t>::max(), {1, 1}).get(),
      InvalidArgument);
  CHECK_THROWS_WITH(world.step(world.session, 0, 1, {1, 2000}).get(), Catch::Contains("2000"));
  CHECK(world.step(world.session, 0, 1, {1, 1}).get().rewards == std::vector<float>{1, 1});
}

TEST_CASE("a worker steps nothing that was not reset, and nothing twice at once") {
  OneWorker world;
  CHECK_THROWS_WITH(world.step(world.session, 0, 1, {1, 1}).get(),
                    Catch::Contains("have to be reset first"));
  world.reset().get();
  Future<env::StepReply> first = world.step(world.session, 0, 1, {1, 1});
  CHECK_THROWS_WITH(world.step(world.session, 0, 1, {1, 1}).get(),
                    Catch::Contains("being stepped"));
  CHECK(std::move(first).get().rewards.size() == 2);
}

TEST_CASE("a worker makes no more environments than its options allow") {
  OneWorker world;
  const auto open = [&](std::uint32_t buffers, std::uint32_t envs, Autoreset autoreset) {
    return world.driver
        ->call<env::OpenFunction>("w0", "envs.open", env::OpenRequest{buffers, envs, autoreset})
        .get();
  };
  CHECK_THROWS_WITH(open(2, 40000, Autoreset::next_step), Catch::Contains("max_envs"));
  CHECK_THROWS_AS(open(0, 1, Autoreset::next_step), InvalidArgument);
  CHECK_THROWS_AS(open(1, 0, Autoreset::next_step), InvalidArgument);
  CHECK_THROWS_AS(open(17, 1, Autoreset::next_step), InvalidArgument);
  CHECK_THROWS_AS(open(1, 1, static_cast<Autoreset>(7)), Error);
}

TEST_CASE("a worker that ends leaves no function behind, and what is under way is answered") {
  SimulatedWorld world;
  Node node(world.options("worker"));
  Node driver(world.options("driver"));
  auto worker = std::make_unique<EnvWorker>(node, counting_envs());
  CHECK(node.functions().size() == 4);
  CHECK_THROWS_AS(EnvWorker(node, counting_envs()), InvalidArgument);
  CHECK(node.functions().size() == 4);
  const EnvWorker another(node, counting_envs(), {.service = "others"});
  CHECK(node.functions().size() == 8);
  worker.reset();
  CHECK(node.functions().size() == 4);
}

TEST_CASE("a worker without a factory, a name or lanes is refused") {
  SimulatedWorld world;
  Node node(world.options("worker"));
  CHECK_THROWS_AS(EnvWorker(node, nullptr), InvalidArgument);
  CHECK_THROWS_AS(EnvWorker(node, counting_envs(), {.service = ""}), InvalidArgument);
  CHECK(node.functions().empty());
}

}  // namespace
}  // namespace batchrpc::test
