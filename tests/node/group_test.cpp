#include "node/group.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/node_core.hpp"
#include "node/raw_frames.hpp"
#include "node/raw_peer.hpp"
#include "node/virtual_world.hpp"

namespace groups {
int add(int a, int b) { return a + b; }
}  // namespace groups

namespace batchrpc {
namespace group_test {

using namespace std::chrono_literals;
using test::names_of;
using test::outcome;
using test::VirtualWorld;

TEST_CASE("a fixed world starts when all of its nodes have joined, in any order") {
  VirtualWorld world;
  const auto options = [&](int rank) {
    NodeOptions node = world.options("n" + std::to_string(rank));
    node.rank = rank;
    node.world_size = 4;
    return node;
  };
  auto three = Node::start(options(3));
  auto one = Node::start(options(1));
  world.run_for(2s);
  CHECK_FALSE(three.ready());
  auto root = Node::start(options(0));
  world.run_for(2s);
  CHECK_FALSE(root.ready());
  auto two = Node::start(options(2));
  std::vector<Node> nodes;
  for (auto* future : {&root, &one, &two, &three})
    nodes.push_back(std::move(*future).get());
  for (const Node& node : nodes) {
    CHECK(node.world_size() == 4);
    CHECK(node.peers().size() == 3);
    node.expose<&groups::add>();
  }
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to)
      CHECK(nodes[static_cast<std::size_t>(from)].call<&groups::add>(to, from, to).get() ==
            from + to);
  }
}

TEST_CASE("a join that lacks peers at its time-out names the missing ranks, to all who wait") {
  VirtualWorld world;
  const auto options = [&](int rank) {
    NodeOptions node = world.options("n" + std::to_string(rank));
    node.rank = rank;
    node.world_size = 6;
    node.join_timeout = 10s;
    return node;
  };
  auto root = Node::start(options(0));
  auto two = Node::start(options(2));
  auto four = Node::start(options(4));
  world.run_for(30s);
  for (auto* future : {&root, &two, &four}) {
    REQUIRE(future->ready());
    const auto result = outcome(std::move(*future));
    REQUIRE_FALSE(result);
    CHECK(result.code() == ErrorCode::join_failed);
    CHECK_THAT(result.message(), Catch::Contains("ranks 1, 3, 5 of a world of 6") &&
                                     Catch::Contains("10 s") &&
                                     Catch::Contains("NodeOptions::join_timeout"));
  }
}

TEST_CASE("one missing rank is named as one, and many are counted") {
  VirtualWorld world;
  NodeOptions options = world.options("root");
  options.world_size = 2;
  options.join_timeout = 1s;
  CHECK_THAT(outcome(Node::start(options)).message(), Catch::StartsWith("rank 1 of a world of 2"));
  options.world_size = 100;
  CHECK_THAT(outcome(Node::start(options)).message(),
             Catch::Contains("ranks 1, 2, 3") && Catch::Contains("20 and 79 more"));
}

TEST_CASE("a node whose root is not there waits for it, and says so at its time-out") {
  VirtualWorld world;
  NodeOptions options = world.joining("early");
  options.join_timeout = 3s;
  const TimePoint start = world.loop->now();
  const auto result = outcome(Node::start(options));
  CHECK(world.loop->now() - start == 3s);
  CHECK(result.code() == ErrorCode::join_failed);
  CHECK_THAT(result.message(), Catch::Contains("inproc://world") && Catch::Contains("3 s") &&
                                   Catch::Contains("rank 0"));
  auto early = Node::start(world.joining("early"));
  world.run_for(10s);
  const Node root = world.root();
  CHECK(std::move(early).get().rank() == 1);
}

TEST_CASE(
    "a node that joins where another program answers warns of that once, and says so at the end") {
  VirtualWorld world;
  const auto transport = world.network->transport(world.loop, "other");
  std::vector<std::unique_ptr<Stream>> accepted;
  const auto listener =
      transport->listen(Address::parse("inproc://world"), [&](std::unique_ptr<Stream> stream) {
        const std::string text = "HTTP/1.1 400 Bad Request\r\n\r\n";
        const std::array<std::span<const std::byte>, 1> bytes{std::as_bytes(std::span(text))};
        (void)stream->try_write(bytes);
        accepted.push_back(std::move(stream));
      });
  NodeOptions options = world.joining("early");
  options.join_timeout = 3s;
  std::vector<std::string> warnings;
  options.logging.sink = [&](LogLevel level, std::string_view line) {
    if (level >= LogLevel::warning) warnings.emplace_back(line);
  };
  CHECK_THAT(outcome(Node::start(options)).message(), Catch::Contains("not a batchrpc frame"));
  CHECK(accepted.size() > 5);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings.front(),
             Catch::Contains("inproc://world") && Catch::Contains("not a batchrpc frame"));
}

TEST_CASE("a node that joins at a member is refused, and learns the address of the root") {
  VirtualWorld world;
  const Node root = world.root();
  const Node member = world.join("member");
  NodeOptions options = world.joining("late");
  options.join = member.address();
  REQUIRE(options.join != root.address());
  const auto result = outcome(Node::start(options));
  CHECK(result.code() == ErrorCode::join_failed);
  CHECK_THAT(result.message(),
             Catch::Contains("member, which is not the root") && Catch::Contains("inproc://world"));
  CHECK(names_of(root) == std::vector<std::string>{"member"});
  CHECK(names_of(member) == std::vector<std::string>{"root"});
}

TEST_CASE("the root numbers nodes that have no rank of their own") {
  VirtualWorld world;
  const Node root = world.root();
  const Node a = world.join("a");
  NodeOptions fixed = world.joining("fixed");
  fixed.rank = 2;
  const Node third{fixed};
  const Node b = world.join("b");
  CHECK(a.rank() == 1);
  CHECK(third.rank() == 2);
  CHECK(b.rank() == 3);
  for (const PeerInfo& peer : root.peers()) {
    if (peer.name == "b") CHECK(peer.rank == 3);
  }
}

TEST_CASE("promise 9: who comes while the root ends joins the next one") {
  struct Lasting {  // takes its time to end
    explicit Lasting(const VirtualWorld& in) : world(in) {}
    Lasting(const Lasting&) = delete;
    Lasting& operator=(const Lasting&) = delete;
    ~Lasting() { world.run_for(100ms); }
    const VirtualWorld& world;
  };
  const VirtualWorld world;
  world.network->set_link("root", "late", {.latency = 10ms});
  std::optional<Node> root(world.root());
  std::optional<Promise<void>> slow(std::in_place);
  root->expose("slow", [&slow] { return slow->get_future(); });
  auto lasting = std::make_shared<Lasting>(world);
  root->expose("captures", [lasting] {});
  lasting.reset();
  const Node member = world.join("member");
  auto call = member.call<void()>("root", "slow");
  world.run_for(1s);

  // Its join arrives while the root is still answering, or while it destroys its functions.
  const auto before_the_end = GENERATE(1000ms, 25ms, 45ms, 55ms, 65ms);
  CAPTURE(before_the_end.count());
  std::optional<Future<Node>> late;
  world.loop->schedule(world.loop->now() + 1200ms - before_the_end,
                       [&] { late = Node::start(world.joining("late")); });
  world.loop->schedule(world.loop->now() + 1200ms, [&slow] { slow->set_value(); });
  root->shutdown(5s);
  call.get();
  root.reset();
  world.run_for(5s);
  REQUIRE(late);
  CHECK_FALSE(late->ready());
  const Node next = world.root();
  world.run_for(5s);
  REQUIRE(late->ready());
  CHECK(std::move(*late).get().rank() > 0);
}

TEST_CASE("a second node of rank 0 at the address of the first is told how to join it") {
  VirtualWorld world;
  const Node root = world.root();
  NodeOptions options = world.joining("forgot its rank");
  options.rank = 0;
  CHECK_THROWS_WITH(Node::start(options),
                    Catch::Contains("is taken") && Catch::Contains("NodeOptions::rank"));
}

// As it travels.
struct Introduction {
  std::string name;
  std::int32_t rank = -1;
  std::uint64_t incarnation = 0;
  std::string host;
  std::vector<std::string> addresses;
};
struct World {
  std::int32_t rank = -1;
  std::vector<Introduction> members;
  std::string taken;
};

TEST_CASE("a member with an address of an unknown scheme keeps nobody from joining") {
  VirtualWorld world;
  const Node root = world.root();
  test::RawPeer later(world);
  later.say_hello("later version", 3);
  later.send(test::define(0, "batchrpc.join", signature<World, Introduction, std::int32_t>()));
  later.send(test::call_frame({.number = 0, .id = 1},
                              Introduction{"later version", -1, 3, "host", {"shm://somewhere"}},
                              std::int32_t{0}));
  CHECK(later.frame(wire::FrameKind::result));
  const Node next = world.join("next");
  CHECK(names_of(next) == std::vector<std::string>{"later version", "root"});
  CHECK(names_of(root) == std::vector<std::string>{"later version", "next"});
}

TEST_CASE("a node joins for itself only") {
  VirtualWorld world;
  const Node root = world.root();
  const Node node = world.join("node");
  const auto result = outcome(node.call<World(Introduction, std::int32_t)>(
      "root", "batchrpc.join", Introduction{"root", 5, 1, "host", {}}, 0));
  CHECK(result.code() == ErrorCode::join_failed);
  CHECK_THAT(result.message(), Catch::Contains("a node can join only under its own name"));
  const Node next = world.join("next");
  CHECK(names_of(next) == std::vector<std::string>{"node", "root"});
}

TEST_CASE("a member that joins again gets the members, is no news, and keeps its rank") {
  const VirtualWorld world;
  const Node root = world.root();
  const Node other = world.join("other");
  const Node node = world.join("node");
  int joins = 0;
  const auto seen = other.on_membership([&](const MembershipChange&) { ++joins; });
  world.run_for(1s);
  const std::uint64_t incarnation = detail::NodeAccess::core(node)->incarnation();
  joins = 0;
  for (const std::int32_t rank : {-1, 2}) {
    const World answer =
        node.call<World(Introduction, std::int32_t)>(
                "root", "batchrpc.join",
                Introduction{"node", rank, incarnation, "elsewhere", {"tcp://1.2.3.4:5"}}, 0)
            .get();
    CHECK(answer.rank == 2);
    CHECK(answer.taken.empty());
    CHECK(answer.members.size() == 3);
  }
  const World refused =
      node.call<World(Introduction, std::int32_t)>("root", "batchrpc.join",
                                                   Introduction{"node", 7, incarnation, "", {}}, 0)
          .get();
  CHECK(refused.taken == "node has rank 2 already");
  world.run_for(5s);
  CHECK(joins == 0);
  CHECK(test::outcome(other.call<int(int)>(7, "nothing", 1)).code() == ErrorCode::not_found);
}

TEST_CASE("a world of another size and another job are refused") {
  VirtualWorld world;
  NodeOptions root_options = world.options("root");
  root_options.job = "one";
  const Node root(root_options);
  NodeOptions size = world.joining("size");
  size.job = "one";
  size.rank = 1;
  size.world_size = 2;
  CHECK_THAT(outcome(Node::start(size)).message(),
             Catch::Contains("a world_size of 2") && Catch::Contains("world_size"));
  NodeOptions job = world.joining("job");
  job.job = "two";
  const auto refused = outcome(Node::start(job));
  CHECK(refused.code() == ErrorCode::join_failed);
  CHECK_THAT(refused.message(), Catch::Contains("'two'") && Catch::Contains("'one'") &&
                                    Catch::Contains("NodeOptions::job"));
  CHECK(root.peers().empty());
}

TEST_CASE("an address that is taken is refused with a message that says what to do") {
  VirtualWorld world;
  const Node root = world.root();
  try {
    const Node second = world.root("second");
    FAIL("two roots listen at one address");
  } catch (const JoinFailed& error) {
    CHECK_THAT(error.what(), Catch::Contains("inproc://world"));
  }
}

}  // namespace group_test
}  // namespace batchrpc
