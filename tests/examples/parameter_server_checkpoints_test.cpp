#include "parameter_server/checkpoints.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace batchrpc_examples {
namespace parameter_server_checkpoints_test {

using Iterations = std::vector<std::int64_t>;

// A server's checkpoints in a folder that is gone afterwards.
struct World {
  World() {
    options.rank = 0;
    options.checkpoint = std::filesystem::temp_directory_path() /
                         ("batchrpc_checkpoints_test_" + std::to_string(::getpid()));
    options.iterations = 100;
    std::filesystem::remove_all(options.checkpoint);
    std::filesystem::create_directory(options.checkpoint);
  }
  ~World() { std::filesystem::remove_all(options.checkpoint); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] std::string file(std::int64_t iterations) const {
    return options.checkpoint + "/server0." + std::to_string(iterations) + ".checkpoint";
  }
  void update(Checkpoints& checkpoints, std::int64_t finished) {
    model.step(at::ones({10}));
    checkpoints.updated({.finished = finished, .gradients = options.trainers}, model);
  }

  ParameterServerOptions options{};
  SharedModel model{at::zeros({10}), 10, {.learning_rate = 1, .momentum = 0}};
};

TEST_CASE("The last two checkpoints stay") {
  World world;
  Checkpoints checkpoints(world.options);
  CHECK(checkpoints.restorable().empty());
  world.update(checkpoints, 1);
  CHECK(checkpoints.restorable() == Iterations{1});
  for (const std::int64_t finished : {2, 9, 10})
    world.update(checkpoints, finished);
  CHECK(Checkpoints(world.options).restorable() == Iterations{9, 10});
}

TEST_CASE("Servers go on from the newest checkpoint that all have") {
  CHECK(newest_common({{"server0", {}}, {"server1", {}}}) == 0);
  CHECK(newest_common({{"server0", {1}}, {"server1", {1}}}) == 1);
  CHECK(newest_common({{"server0", {3, 4}}, {"server1", {2, 3}}}) == 3);
  CHECK(newest_common({{"server0", {3, 4}}, {"server1", {3, 4}}}) == 4);
}

TEST_CASE("Servers without an iteration in common do not begin anew where one has a checkpoint") {
  const auto [first, second, what] = GENERATE(table<Iterations, Iterations, std::string>({
      {{3, 4}, {}, "server0 has 3 4, server1 has none; restore"},
      {{5}, {}, "server0 has 5, server1 has none; restore"},
      {{}, {1}, "server0 has none, server1 has 1; restore"},  // it may be lost, too
      {{4}, {3}, "server0 has 4, server1 has 3; restore"},
  }));
  CHECK_THROWS_WITH(newest_common({{"server0", first}, {"server1", second}}),
                    Catch::Contains("no iteration in common") && Catch::Contains(what));
}

TEST_CASE("Checkpoints newer than the one that a training goes on from are forgotten") {
  World world;
  Checkpoints checkpoints(world.options);
  world.update(checkpoints, 1);
  world.update(checkpoints, 2);
  Checkpoints again(world.options);
  std::ofstream(world.options.checkpoint + "/server0.3.checkpoint.new") << "cut off";
  const auto checkpoint = again.restore(1, 10, 10);
  REQUIRE(checkpoint);
  CHECK(checkpoint->iterations == 1);
  CHECK(at::equal(checkpoint->values, at::full({10}, -1.F)));
  CHECK(again.restorable() == Iterations{1});
  CHECK_FALSE(again.restore(0, 10, 10));
  CHECK(std::filesystem::is_empty(world.options.checkpoint));
}

TEST_CASE("A damaged checkpoint is passed over, unless there is none beside it") {
  World world;
  Checkpoints checkpoints(world.options);
  world.update(checkpoints, 1);
  SECTION("the only one") {
    std::filesystem::resize_file(world.file(1), 100);
    CHECK_THROWS_WITH(checkpoints.restorable(), Catch::Contains("all checkpoints of server0") &&
                                                    Catch::Contains("are damaged"));
  }
  SECTION("the newest") {
    world.update(checkpoints, 2);
    std::ofstream(world.file(2)) << "garbage";
    CHECK(checkpoints.restorable() == Iterations{1});
    CHECK(checkpoints.restore(1, 10, 10)->iterations == 1);
    CHECK_FALSE(std::filesystem::exists(world.file(2)));
  }
  SECTION("the last but one") {
    world.update(checkpoints, 2);
    std::ofstream(world.file(1), std::ios::app) << "garbage";
    CHECK(checkpoints.restorable() == Iterations{2});
  }
  SECTION("both") {
    world.update(checkpoints, 2);
    for (const int iterations : {1, 2})
      std::filesystem::resize_file(world.file(iterations), 0);
    CHECK_THROWS_AS(checkpoints.restorable(), CheckpointError);
    CHECK(std::filesystem::exists(world.file(1)));
  }
}

TEST_CASE("A checkpoint of another training is refused, and both are named") {
  World world;
  Checkpoints first(world.options);
  world.update(first, 1);
  SECTION("with other settings") {
    world.options.learning_rate = 0.25;
    CHECK_THROWS_WITH(Checkpoints(world.options).restorable(),
                      Catch::Contains("lr 0.001, momentum 0.9,") && Catch::Contains("lr 0.25,"));
  }
  SECTION("of another number of servers, with what to do") {
    world.options.servers = 3;
    CHECK_THROWS_AS(Checkpoints(world.options).restorable(), CheckpointError);
    CHECK_THROWS_WITH(Checkpoints(world.options).restorable(),
                      Catch::Contains(world.file(1)) && Catch::Contains("--servers 1") &&
                          Catch::Contains("--servers 3") && Catch::Contains("use the same number"));
  }
  SECTION("of a model of another size") {
    CHECK_THROWS_WITH(first.restore(1, 9, 9), Catch::Contains("another size"));
  }
}

TEST_CASE("Checkpoints are written every so many iterations, and at the end") {
  World world;
  world.options.checkpoint_every = 3;
  Checkpoints checkpoints(world.options);
  world.update(checkpoints, 2);
  CHECK(checkpoints.restorable().empty());
  world.update(checkpoints, 4);  // the trainer that had not had the third is lost
  CHECK(checkpoints.restorable() == Iterations{4});
  world.update(checkpoints, 5);
  SECTION("of the iterations that were asked for") {
    world.update(checkpoints, 100);
    CHECK(checkpoints.restorable() == Iterations{4, 100});
  }
  SECTION("of a training that was left by all") {
    checkpoints.finish(5, world.model);
    CHECK(checkpoints.restorable() == Iterations{4, 5});
    std::filesystem::remove_all(world.options.checkpoint);
    checkpoints.finish(5, world.model);  // it is there: nothing is written again
    CHECK(checkpoints.error().empty());
  }
}

TEST_CASE("A checkpoint tells whose gradients the model has had") {
  World world;
  Checkpoints checkpoints(world.options);
  world.update(checkpoints, 1);
  CHECK(checkpoints.restore(1, 10, 10)->history == gradient_settings(world.options));
  checkpoints.updated({.finished = 2, .gradients = 4}, world.model);
  CHECK(checkpoints.restore(2, 10, 10)->history == kChangingTrainers);
  world.update(checkpoints, 3);
  CHECK(checkpoints.restore(3, 10, 10)->history == kChangingTrainers);

  world.options.trainers = 7;
  Checkpoints others(world.options);
  others.restore(3, 10, 10);
  world.update(others, 4);
  CHECK(others.restore(4, 10, 10)->history == kChangingTrainers);
}

TEST_CASE("A checkpoint that cannot be written is told of until one is") {
  World world;
  Checkpoints checkpoints(world.options);
  const std::string in_the_way = world.options.checkpoint + "/server0.1.checkpoint.new";
  std::filesystem::create_directory(in_the_way);
  world.update(checkpoints, 1);
  CHECK_THAT(checkpoints.error(),
             Catch::StartsWith("no checkpoint after 1 iteration: ") && Catch::Contains(in_the_way));
  world.update(checkpoints, 2);
  CHECK(checkpoints.error().empty());
}

}  // namespace parameter_server_checkpoints_test
}  // namespace batchrpc_examples
