#include "parameter_server/losses.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace batchrpc_examples {
namespace parameter_server_losses_test {

using Words = std::vector<std::string>;

struct World {
  Words told;
  bool interrupted = false;
  Losses losses{[this](const std::string& notice) { told.push_back(notice); },
                [this] { return interrupted; }};
};

TEST_CASE("A parameter server tells of a trainer that is lost, and how many are left") {
  World world;
  world.losses.trainer_lost("trainer1", "it was closed", 2);
  world.losses.trainer_lost("trainer0", "it was closed", 0);
  CHECK(world.told == Words{"trainer1 is lost: it was closed; the training continues with 2 of the "
                            "trainers",
                            "trainer0 is lost: it was closed; no trainer is left"});
  CHECK(world.losses.trainers() == Words{"trainer1", "trainer0"});
}

TEST_CASE("A parameter server tells once of a trainer that joins, and again of its successor") {
  World world;
  world.losses.trainer_joined("trainer1", 7, 3);
  world.losses.trainer_joined("trainer1", 7, 3);
  world.losses.trainer_joined("trainer1", 8, 1);
  CHECK(world.told == Words{"trainer1 has joined; the training continues with 3 trainers",
                            "trainer1 has joined; the training continues with 1 trainer"});
}

TEST_CASE("A trainer that says why it ends is not lost for a parameter server") {
  World world;
  world.losses.trainer_failed("trainer1", "another mode");
  CHECK(world.told == Words{"trainer1 ends: another mode"});
  CHECK(world.losses.trainers().empty());
  CHECK(world.losses.failed_trainers() == Words{"trainer1: another mode"});
}

TEST_CASE("Trainers that end because a parameter server is lost are not lost themselves") {
  World world;
  world.losses.server_lost("server1", "it was closed");
  world.losses.trainer_failed("trainer0", "server1 is lost");
  world.losses.trainer_lost("trainer1", "it was closed", 0);
  CHECK(world.told == Words{"server1 is lost: it was closed; the trainers end"});
  CHECK(world.losses.trainers().empty());
  CHECK(world.losses.failed_trainers().empty());
  CHECK(world.losses.servers().at("server1") == "it was closed");
}

TEST_CASE("Nobody is missed in a training that has ended, or is interrupted") {
  World world;
  SECTION("ended") { world.losses.end(); }
  SECTION("interrupted") { world.interrupted = true; }
  world.losses.trainer_lost("trainer1", "it was closed", 1);
  world.losses.trainer_failed("trainer0", "server1 is lost");
  world.losses.trainer_joined("trainer2", 7, 2);
  world.losses.server_lost("server1", "it was closed");
  world.losses.notify("the loss is NaN");
  CHECK(world.told.empty());
  CHECK(world.losses.trainers().empty());
  CHECK(world.losses.failed_trainers().empty());
  CHECK(world.losses.servers().empty());
}

}  // namespace parameter_server_losses_test
}  // namespace batchrpc_examples
