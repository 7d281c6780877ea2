#include "parameter_server/training_group.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace batchrpc_examples {
namespace {

using Names = std::vector<std::string>;

struct Told {
  std::vector<Names> all;
  auto listener() {
    return [this](const Names& names) { all.push_back(names); };
  }
};

TEST_CASE("Trainers that are expected begin together") {
  Told told;
  TrainingGroup group(2, 0, true, told.listener());
  const auto first = group.join("a");
  CHECK_FALSE(first.ready());
  CHECK_FALSE(group.started());
  CHECK_FALSE(group.over());
  const auto second = group.join("b");
  CHECK(first.get() == 0);
  CHECK(second.get() == 0);
  CHECK(group.started());
  CHECK(told.all == std::vector<Names>{{"a", "b"}});
}

TEST_CASE("A trainer that comes late begins with the next iteration") {
  Told told;
  TrainingGroup group(1, 0, true, told.listener());
  group.join("a").get();
  const auto late = group.join("b");
  CHECK_FALSE(late.ready());
  CHECK_FALSE(group.contains("b"));
  CHECK(group.finish_iteration() == 0);
  CHECK(late.get() == 1);
  CHECK(told.all.back() == Names{"a", "b"});
}

TEST_CASE("A trainer that comes late does not wait for those who are lost") {
  Told told;
  TrainingGroup group(1, 3, true, told.listener());
  group.join("a").get();
  const auto late = group.join("b");
  CHECK(group.leave("a"));
  CHECK(late.get() == 3);
  CHECK(group.members() == Names{"b"});
  CHECK_FALSE(group.over());
  CHECK(group.leave("b"));
  CHECK(group.over());
  CHECK_FALSE(group.leave("b"));
}

TEST_CASE("A trainer that was restarted before anybody noticed goes on in its iteration") {
  Told told;
  TrainingGroup group(2, 0, true, told.listener());
  const auto first = group.join("a");
  const auto again = group.join("a");
  CHECK_FALSE(group.started());
  group.join("b").get();
  CHECK(again.get() == 0);
  CHECK(first.ready());
  group.finish_iteration();
  CHECK(group.join("a").get() == 1);
  CHECK(group.members() == Names{"a", "b"});
}

TEST_CASE("Where iterations are each trainer's own, who comes late begins at once") {
  Told told;
  TrainingGroup group(1, 0, false, told.listener());
  group.join("a").get();
  CHECK(group.join("b").get() == 0);
}

}  // namespace
}  // namespace batchrpc_examples
