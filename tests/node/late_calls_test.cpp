#include <catch2/catch.hpp>

#include "node/metrics_of.hpp"
#include "node/raw_frames.hpp"
#include "node/raw_peer.hpp"

// Calls whose payloads come after their time is over.

namespace batchrpc {
namespace late_calls_test {

using namespace std::chrono_literals;
using test::RawPeer;
using wire::FrameKind;

constexpr std::size_t kBytes = 20'000;  // too large to come with the call

struct Late {
  test::VirtualWorld world;
  Node root = world.root("root");
  int ran = 0;
  std::optional<RawPeer> peer{};

  Late() {
    root.expose("size", [this](const Bytes& bytes) {
      ++ran;
      return bytes.size();
    });
    peer.emplace(world);
    peer->say_hello();
    peer->send(test::define(0, "size", signature<std::size_t, Bytes>()));
  }

  /// Sends a call with a second to go, and its payload after `pause`.
  void call(Duration pause) {
    constexpr std::uint64_t kMicroseconds = 1'000'000;
    peer->send(
        test::call_frame({.number = 0, .id = 1, .value = kMicroseconds}, Bytes::allocate(kBytes)));
    world.run_for(pause);
    auto chunk = wire::plain_frame({.kind = FrameKind::chunk, .id = 1, .value = kBytes});
    chunk.resize(chunk.size() + wire::padded(kBytes) / sizeof(Word));
    peer->send(chunk);
    world.run_for(100ms);
  }
};

TEST_CASE("a call that is complete in time runs") {
  Late late;
  late.call(900ms);
  CHECK(late.ran == 1);
  CHECK(late.peer->frame(FrameKind::result));
  CHECK(test::answered_of(late.root.metrics(), "size")->ok == 1);
}

TEST_CASE("a call that is complete only after its deadline never runs, and is counted") {
  Late late;
  late.call(1100ms);
  CHECK(late.ran == 0);
  const auto answer = late.peer->frame(FrameKind::error);
  REQUIRE(answer);
  const CallMetrics calls = *test::answered_of(late.root.metrics(), "size");
  CHECK(calls.calls == 1);
  CHECK(calls.errors.of(ErrorCode::timed_out) == 1);
  CHECK(calls.bytes_received > kBytes);
  CHECK(test::adds_up(calls));
}

}  // namespace late_calls_test
}  // namespace batchrpc
