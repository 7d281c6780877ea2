#include <catch2/catch.hpp>

#include "batchrpc/profile.hpp"
#include "node/raw_frames.hpp"
#include "node/raw_peer.hpp"
#include "peers/member.hpp"

// Peers that send contexts and records which no node of ours would, or none.
namespace batchrpc {
namespace hostile_records_test {

using namespace std::chrono_literals;
using test::RawPeer;
using wire::FrameKind;

struct World {
  World() {
    node.expose("twice", [this](int number) {
      ++runs;
      return 2 * number;
    });
    raw.say_hello();
    raw.send(test::define(0, "twice", signature<int, int>()));
    raw.send(test::join_as_raw(1, 99));
    REQUIRE(raw.frame(FrameKind::result));
  }
  // A call of it with this context.
  [[nodiscard]] static std::vector<Word> call(std::uint64_t id,
                                              const wire::CallContextBody& context) {
    Encoder encoder(wire::kEnvelopeWords);
    encode_struct<int>(encoder, wire::kBodyPointer, 21);
    wire::add_context(encoder, context);
    wire::finish_frame(encoder, {.kind = FrameKind::call, .id = id});
    return encoder.words();
  }

  test::VirtualWorld world;
  Node node = world.root("a");
  RawPeer raw{world};
  int runs = 0;
};

TEST_CASE("what a later version wishes for is taken as what is known here") {
  World world;
  world.raw.send(World::call(1, {.record = static_cast<wire::RecordWish>(77)}));
  const auto result = world.raw.frame(FrameKind::result);
  REQUIRE(result);
  const wire::FrameView frame = wire::parse_frame(*result);
  CHECK(frame.has_context());
  Decoder decoder(frame.segment(), {});
  CHECK(wire::decode_side(decoder, wire::kContextInSegment).finished != TimePoint());
}

TEST_CASE("a call that wishes for no record gets none") {
  World world;
  world.raw.send(World::call(1, {.metadata = {{"k", "v"}}}));
  const auto result = world.raw.frame(FrameKind::result);
  REQUIRE(result);
  CHECK_FALSE(wire::parse_frame(*result).has_context());
}

TEST_CASE("a context that points outside of its frame ends the connection, and runs nothing") {
  World world;
  auto words = World::call(1, {.metadata = {{"k", "v"}}});
  words[wire::kContextPointer] += Word{1} << 20;
  world.raw.send(words);
  CHECK(world.raw.closed());
  CHECK(world.runs == 0);
  CHECK(world.world.log.contain("raw"));
}

TEST_CASE("a reply's record that cannot be read is left out, and the result counts") {
  World world;
  const Profiler profiler(world.node);
  for (const bool breaks : {false, true}) {
    auto answer = world.node.call<int(int)>("raw", "theirs", 1);
    world.world.run_for(1ms);
    auto call = world.raw.frame(FrameKind::call);
    REQUIRE(call);
    CHECK(wire::parse_frame(*call).has_context());
    Encoder encoder(wire::kEnvelopeWords);
    encode_struct<int>(encoder, wire::kBodyPointer, 5);
    CallRecord record;
    record.received = record.begun = record.finished = world.world.loop->now();
    record.operators.resize(3);
    wire::encode_side(encoder, wire::kContextPointer, record);
    wire::finish_frame(encoder,
                       {.kind = FrameKind::result, .id = wire::parse_frame(*call).header.id});
    if (breaks) encoder.words()[wire::kContextPointer] += Word{1} << 20;
    world.raw.send(encoder.words());
    CHECK(std::move(answer).get() == 5);
  }
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 2);
  CHECK(recording.calls[0].operators.size() == 3);
  CHECK(recording.calls[1].received == TimePoint());
  CHECK(recording.calls[1].error.empty());
}

TEST_CASE("an error's record that cannot be read is left out, and the session lives on") {
  World world;
  const Profiler profiler(world.node);
  for (int round = 0; round < 2; ++round) {
    auto answer = world.node.call<int(int)>("raw", "theirs", 1);
    world.world.run_for(1ms);
    const auto call = world.raw.frame(FrameKind::call);
    REQUIRE(call);
    CallRecord record;
    record.operators.resize(100);
    auto frame =
        wire::error_frame(wire::parse_frame(*call).header.id,
                          std::make_exception_ptr(std::runtime_error("no")), true, &record);
    frame.back() = ~Word{0};
    for (std::size_t i = frame.size() - 300; i < frame.size(); ++i)
      frame[i] = ~Word{0};
    world.raw.send(frame);
    const auto result = test::outcome(std::move(answer));
    REQUIRE_FALSE(result);
    CHECK(result.code() == ErrorCode::remote_error);
  }
  CHECK_FALSE(world.raw.closed());
  CHECK(profiler.recording().calls.size() == 2);
}

TEST_CASE("a peer that tells more than any node of ours would is not believed") {
  World world;
  Profiler profiler(world.node, {.max_events = 1000});
  auto answer = world.node.call<int(int)>("raw", "theirs", 1);
  world.world.run_for(1ms);
  const auto call = world.raw.frame(FrameKind::call);
  REQUIRE(call);
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<int>(encoder, wire::kBodyPointer, 5);
  CallRecord record;
  record.operators.resize(20'000);
  record.operators[0].name.assign(100'000, 'x');
  wire::encode_side(encoder, wire::kContextPointer, record);
  wire::finish_frame(encoder,
                     {.kind = FrameKind::result, .id = wire::parse_frame(*call).header.id});
  world.raw.send(encoder.words());
  CHECK(std::move(answer).get() == 5);
  const CallRecord kept = profiler.recording().calls.at(0);
  CHECK(kept.operators.empty());
  CHECK(kept.left_out == 20'000);
}

TEST_CASE("a callee that tells no record leaves its side open") {
  World world;
  const Profiler profiler(world.node);
  auto answer = world.node.call<int(int)>("raw", "theirs", 1);
  world.world.run_for(3ms);
  const auto call = world.raw.frame(FrameKind::call);
  REQUIRE(call);
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<int>(encoder, wire::kBodyPointer, 5);
  wire::finish_frame(encoder,
                     {.kind = FrameKind::result, .id = wire::parse_frame(*call).header.id});
  world.raw.send(encoder.words());
  CHECK(std::move(answer).get() == 5);
  const CallRecord call_record = profiler.recording().calls.at(0);
  CHECK(call_record.received == TimePoint());
  CHECK(call_record.replied != TimePoint());
  const std::string table = profiler.key_averages().table();
  CHECK(table.find("rpc_async#theirs(a -> raw)") != std::string::npos);
}

}  // namespace hostile_records_test
}  // namespace batchrpc
