#include "node/group_roster.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace batchrpc {
namespace group_roster_test {

Member member(const std::string& name, int rank, std::uint64_t incarnation = 1) {
  return {.name = name, .rank = rank, .incarnation = incarnation};
}

TEST_CASE("a roster gives nodes the lowest free rank, or the one that they have") {
  GroupRoster roster;
  roster.add(member("root", 0));
  roster.add(member("b", 2));
  CHECK(roster.rank_for("c") == 1);
  CHECK(roster.rank_for("b") == 2);
  REQUIRE(roster.other_of_rank(2, "c") != nullptr);
  CHECK(roster.other_of_rank(2, "c")->name == "b");
  CHECK(roster.other_of_rank(2, "b") == nullptr);
  CHECK(roster.other_of_rank(1, "c") == nullptr);
}

TEST_CASE("a name is a member's or a lost one's, and each incarnation is lost and found once") {
  GroupRoster roster;
  roster.add(member("root", 0));
  roster.add(member("a", 1, 7));
  CHECK_FALSE(roster.lose("a", 6));
  CHECK_FALSE(roster.restore("a", 7));
  REQUIRE(roster.lose("a", 7));
  CHECK_FALSE(roster.lose("a", 7));
  CHECK(roster.members().size() == 1);
  CHECK(roster.lost().size() == 1);
  CHECK_FALSE(roster.restore("a", 6));
  const auto back = roster.restore("a", 7);
  REQUIRE(back);
  CHECK(back->rank == 1);
  CHECK(roster.lost().empty());
  CHECK(roster.lose("a", 7));
  roster.add(member("a", 1, 8));  // restarted
  CHECK(roster.lost().empty());
  CHECK_FALSE(roster.restore("a", 7));
  CHECK(roster.members().size() == 2);
}

TEST_CASE("lost nodes of a rank are given up once, and do not come back by themselves") {
  GroupRoster roster;
  roster.add(member("root", 0));
  for (const std::string name : {"a", "b"}) {
    roster.add(member(name, 1, 7));
    REQUIRE(roster.lose(name, 7));
  }
  CHECK(roster.take_lost_of_rank(2).empty());
  CHECK(roster.take_lost_of_rank(1).size() == 2);
  CHECK(roster.take_lost_of_rank(1).empty());
  CHECK(roster.lost().size() == 2);  // members that were away have yet to hear of it
  CHECK_FALSE(roster.restore("a", 7));
}

TEST_CASE("a node that comes again takes the place of its name") {
  GroupRoster roster;
  roster.add(member("root", 0));
  roster.add(member("a", 1, 7));
  roster.add(member("b", 2));
  roster.add(member("a", 1, 8));
  REQUIRE(roster.members().size() == 3);
  CHECK(roster.members().back().incarnation == 8);
  CHECK(roster.names_without("root", "b") == std::vector<std::string>{"a"});
}

TEST_CASE("a world is complete when all are there, and names whom it lacks") {
  GroupRoster roster;
  CHECK(roster.is_complete(0));
  roster.add(member("root", 0));
  CHECK_FALSE(roster.is_complete(4));
  roster.add(member("b", 2));
  CHECK(roster.missing_ranks(4) == "ranks 1, 3");
  roster.add(member("c", 3));
  CHECK(roster.missing_ranks(4) == "rank 1");
  CHECK_THAT(roster.missing_ranks(50), Catch::EndsWith(", 22 and 27 more"));
  roster.add(member("a", 1));
  CHECK(roster.is_complete(4));
}

}  // namespace group_roster_test
}  // namespace batchrpc
