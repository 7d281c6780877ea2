#include "parameter_server/training_group.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace batchrpc_examples {
namespace parameter_server_group_test {

using Names = std::vector<std::string>;

struct Told {
  std::vector<Names> all;
  auto listener() {
    return [this](const Names& names) { all.push_back(names); };
  }
};

Names names(const TrainingGroup& group) {
  Names all;
  for (const TrainingGroup::Trainer& trainer : group.members())
    all.push_back(trainer.name);
  return all;
}

TrainingGroup::Trainer trainer(const std::string& name, std::uint64_t incarnation) {
  return {.name = name, .incarnation = incarnation};
}

TEST_CASE("Trainers that are expected begin together") {
  Told told;
  TrainingGroup group(2, 0, true, told.listener());
  const auto first = group.join({"a"});
  CHECK_FALSE(first.ready());
  CHECK_FALSE(group.started());
  CHECK_FALSE(group.over());
  const auto second = group.join({"b"});
  CHECK(first.get() == 0);
  CHECK(second.get() == 0);
  CHECK(group.started());
  CHECK(told.all == std::vector<Names>{{"a", "b"}});
}

TEST_CASE("A trainer that comes late begins with the next iteration") {
  Told told;
  TrainingGroup group(1, 0, true, told.listener());
  group.join({"a"}).get();
  const auto late = group.join({"b"});
  CHECK_FALSE(late.ready());
  CHECK_FALSE(group.contains({"b"}));
  CHECK(group.knows({"b"}));
  CHECK_FALSE(group.knows(trainer("b", 1)));
  group.finish_iterations(1);
  CHECK(late.get() == 1);
  CHECK(told.all.back() == Names{"a", "b"});
}

TEST_CASE("A trainer that comes late does not wait for those who are lost") {
  Told told;
  TrainingGroup group(1, 3, true, told.listener());
  group.join({"a"}).get();
  const auto late = group.join({"b"});
  CHECK(group.leave({"a"}));
  CHECK(late.get() == 3);
  CHECK(names(group) == Names{"b"});
  CHECK_FALSE(group.over());
  CHECK(group.leave({"b"}));
  CHECK(group.over());
  CHECK_FALSE(group.leave({"b"}));
}

TEST_CASE("A trainer that was restarted before anybody noticed begins like one that comes late") {
  Told told;
  TrainingGroup group(2, 0, true, told.listener());
  const auto first = group.join(trainer("a", 1));
  group.join(trainer("b", 1)).get();
  CHECK(first.get() == 0);
  const auto again = group.join(trainer("a", 2));
  CHECK_FALSE(again.ready());
  SECTION("with the next iteration") {
    CHECK(group.leave(trainer("a", 1)));
    CHECK_FALSE(again.ready());
    CHECK(told.all.back() == Names{"b"});
    group.finish_iterations(1);
    CHECK(again.get() == 1);
  }
  SECTION("and the news of its former self's loss, when they come late, are not of it") {
    group.finish_iterations(1);
    CHECK(again.get() == 1);
    CHECK_FALSE(group.leave(trainer("a", 1)));
  }
  CHECK(names(group) == Names{"a", "b"});
  CHECK(group.contains(trainer("a", 2)));
  CHECK_FALSE(group.contains(trainer("a", 1)));
}

TEST_CASE("The loss of a trainer that was restarted while it waited does not take its successor") {
  Told told;
  TrainingGroup group(2, 0, true, told.listener());
  const auto first = group.join(trainer("a", 1));
  const auto again = group.join(trainer("a", 2));
  CHECK_FALSE(group.leave(trainer("a", 1)));
  group.join({"b"}).get();
  CHECK(again.get() == 0);
  CHECK(first.ready());
}

TEST_CASE("Nobody begins in an iteration whose update is being made") {
  Told told;
  TrainingGroup group(1, 0, true, told.listener());
  group.join(trainer("a", 1)).get();
  CHECK(group.begin_update({trainer("a", 1)}));
  const auto again = group.join(trainer("a", 2));
  CHECK(group.leave(trainer("a", 1)));
  CHECK_FALSE(again.ready());
  SECTION("but in the next one") {
    group.finish_iterations(1);
    CHECK(again.get() == 1);
  }
  SECTION("unless it fails") {
    group.end_update();
    CHECK(again.get() == 0);
  }
}

TEST_CASE("No update is made of gradients whose senders are all gone") {
  Told told;
  TrainingGroup group(2, 0, true, told.listener());
  const auto first = group.join(trainer("a", 1));
  group.join({"b"}).get();
  group.leave(trainer("a", 1));
  CHECK(group.begin_update({trainer("a", 1), {"b"}}));
  group.end_update();
  CHECK_FALSE(group.begin_update({trainer("a", 1)}));
}

TEST_CASE("Where iterations are each trainer's own, who comes late begins at once") {
  Told told;
  TrainingGroup group(1, 0, false, told.listener());
  group.join({"a"}).get();
  CHECK(group.join({"b"}).get() == 0);
}

}  // namespace parameter_server_group_test
}  // namespace batchrpc_examples
