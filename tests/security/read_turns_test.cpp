#include "session/read_turn.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "node/raw_frames.hpp"
#include "node/raw_peer.hpp"

// How connections take turns, so that one that sends without end leaves the others served.

namespace batchrpc {
namespace read_turns_test {

using namespace std::chrono_literals;
using test::call_frame;
using test::define;
using test::RawPeer;
using wire::FrameKind;

void append(std::vector<Word>& words, const std::vector<Word>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

/// A node that notes the calls that it answers, in their order, and two peers.
struct Scene {
  explicit Scene(bool is_short = true) {
    root.expose("note",
                [this](int value) {
                  noted.push_back(value);
                  return value;
                },
                {.short_handler = is_short});
    world.network->set_link({.latency = 1ms});
    busy = connect("busy", 3);
    other = connect("other", 5);
  }
  [[nodiscard]] std::unique_ptr<RawPeer> connect(const std::string& name,
                                                 std::uint64_t incarnation) const {
    auto peer = std::make_unique<RawPeer>(world);
    world.run_for(10ms);
    peer->say_hello(name, incarnation);
    peer->send(define(0, "note", signature<int, int>()));
    world.run_for(10ms);
    return peer;
  }
  [[nodiscard]] std::ptrdiff_t place_of(int value) const {
    return std::find(noted.begin(), noted.end(), value) - noted.begin();
  }

  test::VirtualWorld world;
  std::vector<int> noted;
  Node root = world.root();
  std::unique_ptr<RawPeer> busy;
  std::unique_ptr<RawPeer> other;
};

constexpr int kCalls = 2000;
constexpr int kOthers = -1;

std::vector<Word> calls(int count) {
  std::vector<Word> words;
  for (int i = 0; i < count; ++i)
    append(words, call_frame({.number = 0, .id = static_cast<std::uint64_t>(i)}, i));
  return words;
}

TEST_CASE("a turn is over after 64 messages and 250 us, 512 messages, or 1 ms") {
  VirtualLoop loop(1);
  ReadTurn unlimited;
  ReadTurn many(loop, loop.ticks(), false);
  for (unsigned i = 0; i < ReadTurn::kMost; ++i) {
    CHECK_FALSE(many.is_over());
    many.count_message(64);
    unlimited.count_message(64);
  }
  CHECK(many.is_over());
  CHECK_FALSE(unlimited.is_over());
  ReadTurn usual(loop, loop.ticks(), false);
  loop.run_for(250us);
  for (unsigned i = 0; i < ReadTurn::kMessages; ++i) {
    CHECK_FALSE(usual.is_over());
    usual.count_message(64);
  }
  CHECK(usual.is_over());
  ReadTurn slow(loop, loop.ticks(), false);
  for (int i = 0; i < 8; ++i)
    slow.count_message(64);
  CHECK_FALSE(slow.is_over());
  loop.run_for(1ms);
  for (int i = 0; i < 8; ++i)
    slow.count_message(64);
  CHECK(slow.is_over());
  CHECK(slow.had_long_messages());
  CHECK_FALSE(usual.had_long_messages());
}

TEST_CASE("the clock is looked at after each large message, and after each of a slow connection") {
  VirtualLoop loop(1);
  const bool careful = GENERATE(true, false);
  ReadTurn turn(loop, loop.ticks(), careful);
  loop.run_for(1ms);
  CHECK(turn.count_message(careful ? 64 : 2000));
  CHECK(turn.had_long_messages());
}

TEST_CASE("a peer that sends two thousand calls at once lets others pass, and all are answered") {
  Scene scene;
  scene.busy->send(calls(kCalls));
  scene.other->send(call_frame({.number = 0, .id = 1}, kOthers));
  CHECK(scene.noted.empty());
  scene.world.run_for(1ms);  // all arrive now, and nothing later
  REQUIRE(scene.noted.size() == kCalls + 1);
  CHECK(scene.place_of(kOthers) <= std::ptrdiff_t{2 * ReadTurn::kMost});
  std::erase(scene.noted, kOthers);
  CHECK(std::is_sorted(scene.noted.begin(), scene.noted.end()));
}

TEST_CASE("a peer that pings or calls what is not there lets others pass") {
  const bool pings = GENERATE(true, false);
  Scene scene;
  scene.busy->send(define(1, "nothing", signature<int, int>()));
  std::vector<Word> flood;
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    append(flood, pings ? wire::plain_frame({.kind = FrameKind::ping, .id = i})
                        : call_frame({.number = 1, .id = i}, 1));
  }
  append(flood, call_frame({.number = 0, .id = kCalls}, 1));
  scene.busy->send(flood);
  scene.other->send(call_frame({.number = 0, .id = 1}, kOthers));
  scene.world.run_for(1ms);
  CHECK(scene.noted == std::vector<int>{kOthers, 1});
}

TEST_CASE("a connection may end between two turns") {
  const bool breaks = GENERATE(true, false);
  Scene scene;
  auto gone = scene.connect("gone", 7);
  std::vector<Word> words = calls(kCalls);
  append(words, {~Word{0}});  // no frame
  append(words, calls(kCalls));
  gone->send(words);
  if (breaks) gone.reset();
  scene.world.run_for(2s);
  CHECK(scene.noted.size() == kCalls);
  scene.other->send(call_frame({.number = 0, .id = 1}, kOthers));
  scene.world.run_for(1ms);
  CHECK(scene.noted.back() == kOthers);
}

TEST_CASE("what came with a message whose handler waits is handled without more bytes") {
  Scene scene;
  Promise<int> later;
  scene.root.expose("wait", [&later](int) { return later.get_future().get(); },
                    {.short_handler = true});
  scene.root.expose("fill",
                    [&later](int value) {
                      later.set_value(value);
                      return value;
                    },
                    {.short_handler = true});
  std::vector<Word> words = define(1, "wait", signature<int, int>());
  append(words, define(2, "fill", signature<int, int>()));
  append(words, call_frame({.number = 1, .id = 1}, 0));
  append(words, call_frame({.number = 2, .id = 2}, 7));
  const TimePoint before = scene.world.loop->now();
  scene.busy->send(words);
  scene.world.run_for(2ms);
  CHECK(scene.world.loop->now() - before == 2ms);
  CHECK(scene.busy->frame(FrameKind::result));
}

}  // namespace read_turns_test
}  // namespace batchrpc
