#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "node/raw_frames.hpp"
#include "node/raw_peer.hpp"

// What nodes that join again and again cost the root.

namespace batchrpc {
namespace joins_test {

using namespace std::chrono_literals;
using test::RawPeer;

std::vector<Word> join_frame(std::uint64_t id, std::int32_t world_size) {
  return test::call_frame({.number = 0, .id = id},
                          Member{.name = "raw", .rank = 1, .incarnation = 1}, world_size);
}

TEST_CASE("while a group forms, each member waits once, however often it asks to join") {
  const test::VirtualWorld world;
  NodeOptions options = world.options("root");
  options.world_size = 3;
  const Future<Node> starting = Node::start(std::move(options));
  world.run_for(10ms);
  RawPeer peer(world);
  peer.say_hello();
  peer.send(test::define(0, "batchrpc.join", signature<JoinReply, Member, std::int32_t>()));
  constexpr std::uint64_t kJoins = 5;
  for (std::uint64_t id = 1; id <= kJoins; ++id)
    peer.send(join_frame(id, 3));
  world.run_for(10ms);
  std::vector<std::uint64_t> refused;
  for (const auto& words : peer.frames()) {
    const auto frame = wire::parse_frame(words);
    if (frame.header.kind == wire::FrameKind::error) refused.push_back(frame.header.id);
    CHECK(frame.header.kind != wire::FrameKind::result);
  }
  CHECK(refused == std::vector<std::uint64_t>{1, 2, 3, 4});  // the last one still waits
  CHECK_FALSE(starting.ready());
  world.run_for(61s);
}

}  // namespace joins_test
}  // namespace batchrpc
