#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "node/node_core.hpp"
#include "node/raw_frames.hpp"
#include "node/raw_peer.hpp"
#include "rref/objects.hpp"

// What a few bytes of a peer can make a node do in one turn of its loop.

namespace batchrpc {
namespace long_turns_test {

using namespace std::chrono_literals;
using test::ObjectWorld;

/// The calls of the method that have failed at that node.
std::uint64_t failed(const Node& node) {
  for (const FunctionMetrics& function : node.metrics().functions) {
    if (function.name == "objects::Counter::add") return function.answered.errors.total();
  }
  return 0;
}

TEST_CASE("calls of an object that never comes end by a few hundred at a time") {
  constexpr std::uint64_t kCalls = 2000;
  const ObjectWorld nodes;
  const detail::ObjectId made_up{.owner = detail::NodeAccess::core(nodes.owner)->incarnation(),
                                 .creator = 5,
                                 .number = 1,
                                 .key = 7};
  std::vector<std::uint64_t> seen;  // how many had failed, turn by turn
  std::function<void()> look = [&] {
    seen.push_back(failed(nodes.owner));
    if (seen.back() < kCalls) nodes.world.loop->post(look);
  };
  std::uint64_t ended = 0;
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    nodes.third
        .call<int(detail::ObjectId, int)>("owner", "batchrpc.method:objects::Counter::add", made_up,
                                          1)
        .then([&](const Result<int>& result) {
          CHECK_FALSE(result);
          if (++ended == 1) look();
        });
  }
  nodes.world.run_for(11s);
  CHECK(ended == kCalls);
  REQUIRE_FALSE(seen.empty());
  std::uint64_t most = seen.front();
  for (std::size_t i = 1; i < seen.size(); ++i)
    most = std::max(most, seen[i] - seen[i - 1]);
  CHECK(seen.back() == kCalls);
  CHECK(most <= 512);
}

std::vector<Word> method_frame(std::uint32_t number, std::uint64_t id, const detail::ObjectId& of,
                               const Bytes& bytes, wire::CallContextBody context = {}) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<detail::ObjectId, Bytes>(encoder, wire::kBodyPointer, of, bytes);
  if (!context.metadata.empty()) wire::add_context(encoder, context);
  return test::finished_call(encoder, {.number = number, .id = id});
}

TEST_CASE("a call in a long line that breaks the protocol fails alone, whenever its turn is") {
  const test::VirtualWorld world;
  const Node root = world.root();
  test::RawPeer peer(world);
  peer.say_hello();
  peer.send(test::define(0, "batchrpc.method:size", signature<int, detail::ObjectId, Bytes>()));
  const detail::ObjectId object{.owner = 1, .creator = 2, .number = 3, .key = 4};
  constexpr std::size_t kLarge = 100'000;
  constexpr std::uint64_t kCalls = 1200;
  peer.send(method_frame(0, 1, object, Bytes::allocate(kLarge)));
  std::vector<Word> words;
  for (std::uint64_t id = 2; id <= kCalls; ++id) {
    const bool bad = id == 700 || id == 1100;
    const auto frame = method_frame(
        0, id, object, {},
        bad ? wire::CallContextBody{.metadata = {{"", "x"}}} : wire::CallContextBody{});
    words.insert(words.end(), frame.begin(), frame.end());
  }
  peer.send(words);
  world.run_for(10ms);
  CHECK(peer.frames().size() < 10);  // all wait for the first
  auto chunk = wire::plain_frame({.kind = wire::FrameKind::chunk, .id = 1, .value = kLarge});
  chunk.resize(chunk.size() + wire::padded(kLarge) / sizeof(Word));
  peer.send(chunk);
  world.run_for(100ms);
  std::size_t answered = 0;
  for (const auto& frame : peer.frames())
    answered += wire::parse_frame(frame).header.kind == wire::FrameKind::error;
  CHECK(answered == kCalls);
  CHECK_FALSE(peer.closed());
}

TEST_CASE("a function of the library takes arguments of eight times their message at most") {
  using Many = std::vector<std::monostate>;  // a word each, and none in the message
  test::NodePair pair;
  const auto expose = [&](const std::string& name) {
    const auto size = [](const Many& many) { return many.size(); };
    detail::NodeAccess::core(pair.b)->expose(
        std::make_shared<detail::TypedFunction<std::decay_t<decltype(size)>,
                                               detail::FunctionTraits<decltype(size)>>>(
            name, size, ExposeOptions{.short_handler = true}));
  };
  expose("size");
  expose("batchrpc.size");
  const auto call = [&](const char* name, std::size_t size) {
    return test::outcome(pair.a.call<std::size_t(Many)>("b", name, Many(size)));
  };
  CHECK(call("size", 20'000).value() == 20'000);
  CHECK(call("batchrpc.size", 8'000).value() == 8'000);
  CHECK_THAT(test::message_of(call("batchrpc.size", 20'000)), Catch::Contains("traversal limit"));
}

}  // namespace long_turns_test
}  // namespace batchrpc
