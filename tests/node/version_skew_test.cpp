#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "blob.hpp"
#include "node/raw_frames.hpp"
#include "node/raw_peer.hpp"
#include "node/virtual_world.hpp"

// Promise 10 (docs/reliability.md). tests/recorded/<major>.<minor>/ has what a node of each version
// of the protocol sends (scripts/record_frames.sh); here a node of this version gets it.

namespace batchrpc {
namespace version_skew_test {

using namespace std::chrono_literals;
using Catch::Contains;
using test::call_frame;
using test::define;
using test::outcome;
using test::RawPeer;
using wire::FrameKind;

std::vector<std::filesystem::path> recorded_versions() {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(BATCHRPC_SOURCE_DIR) / "tests/recorded")) {
    folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

Bytes counted(std::size_t size) {
  Bytes bytes = Bytes::allocate(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes.mutable_data()[i] = static_cast<std::byte>(i);
  return bytes;
}

/// A node, and the recorded one, which says what is in its files.
struct Conversation {
  explicit Conversation(std::filesystem::path from) : folder(std::move(from)) {
    root.expose("twice", [this](int x) {
      ++twice_ran;
      return 2 * x;
    });
    root.expose("size", [this](const Bytes& bytes) {
      ++size_ran;
      if (bytes != counted(bytes.size())) throw std::runtime_error("other bytes");
      return bytes.size();
    });
    root.expose("blob", [](const test::Blob& blob) {
      if (blob.bytes != counted(blob.bytes.size())) throw std::runtime_error("other bytes");
      return blob.bytes.size();
    });
    root.expose("fail", [] { throw std::runtime_error("no way"); });
  }

  void say(const std::string& name, std::optional<std::uint64_t> id = std::nullopt) {
    INFO(folder.string() << ": " << name);
    std::ifstream file(folder / (name + ".bin"), std::ios::binary);
    std::vector<char> content{std::istreambuf_iterator<char>(file), {}};
    REQUIRE_FALSE(content.empty());
    std::vector<Word> words(content.size() / sizeof(Word));
    std::memcpy(words.data(), content.data(), content.size());
    if (id) set_ids(words, *id);
    peer.send(words);
    REQUIRE_FALSE(peer.closed());
  }
  void introduce() {
    say("hello");
    const auto hello = peer.frame(FrameKind::hello);
    REQUIRE(hello);
    CHECK(wire::read_hello(wire::parse_frame(*hello)).major == wire::kMajor);
    say("define");
  }
  /// The value of the reply to a call.
  template <class T>
  T reply(std::uint64_t id) {
    const auto result = peer.frame(FrameKind::result);
    REQUIRE(result);
    const auto frame = wire::parse_frame(*result);
    CHECK(frame.header.id == id);
    Decoder decoder(frame.segment(), {});
    return std::get<0>(decode_struct<T>(decoder, wire::kBodyInSegment));
  }
  wire::ErrorBody error(std::uint64_t id) {
    const auto words = peer.frame(FrameKind::error);
    REQUIRE(words);
    const auto frame = wire::parse_frame(*words);
    CHECK(frame.header.id == id);
    return wire::read_error(frame);
  }
  /// The id of the call that the node has just made.
  std::uint64_t called() {
    const auto words = peer.frame(FrameKind::call);
    REQUIRE(words);
    return wire::parse_frame(*words).header.id;
  }

  std::filesystem::path folder;
  int twice_ran = 0;
  int size_ran = 0;
  test::VirtualWorld world;
  Node root = world.root();
  RawPeer peer{world};

 private:
  // Of all frames, that is: of what is there of them.
  static void set_ids(std::span<Word> words, std::uint64_t id) {
    while (!words.empty()) {
      const auto size = wire::frame_words(words.front());
      REQUIRE((size && *size <= words.size()));
      wire::set_id(words.first(*size), id);
      const auto frame = wire::parse_frame(words.first(*size));
      std::uint64_t behind = 0;
      if (frame.header.kind == FrameKind::chunk) behind = wire::padded(frame.header.value);
      if ((frame.header.flags & wire::kInlinePayloads) != 0) {
        for (const std::uint64_t payload : frame.payload_sizes)
          behind += wire::padded(payload);
      }
      words = words.subspan(*size + behind / sizeof(Word));
    }
  }
};

TEST_CASE("promise 10: frames recorded from every release are understood: calls") {
  const auto versions = recorded_versions();
  REQUIRE_FALSE(versions.empty());
  for (const auto& folder : versions) {
    INFO(folder.string());
    Conversation with(folder);
    with.introduce();
    with.say("call");
    CHECK(with.reply<int>(101) == 42);
    with.say("call_inline");
    CHECK(with.reply<std::size_t>(102) == 999);
    with.say("call_chunks");
    CHECK(with.reply<std::size_t>(103) == 17'001);
    with.say("call_fails");
    const auto thrown = with.error(104);
    CHECK(thrown.code == static_cast<std::uint16_t>(ErrorCode::remote_error));
    CHECK(thrown.message == "no way");
    with.say("call_missing");
    CHECK(with.error(105).code == static_cast<std::uint16_t>(ErrorCode::not_found));
    with.say("notification");
    CHECK(with.twice_ran == 2);
    with.say("call_cancelled");
    with.world.run_for(1s);
    CHECK(with.size_ran == 1);
    with.say("ping");
    CHECK(with.peer.frame(FrameKind::pong));
    with.say("goodbye");
    with.say("call");  // until it closes
  }
}

TEST_CASE("promise 10: frames recorded from every release are understood: joining, and answers") {
  for (const auto& folder : recorded_versions()) {
    INFO(folder.string());
    Conversation with(folder);
    with.introduce();
    with.say("join");
    CHECK(with.peer.frame(FrameKind::result));
    const auto peers = with.root.peers();
    REQUIRE(peers.size() == 1);
    CHECK(peers[0].name == "recorded");
    CHECK(peers[0].incarnation == 41);

    auto number = with.root.call<int(int)>("recorded", "f", 1);
    with.say("result", with.called());
    CHECK(number.get() == 42);
    auto blob = with.root.call<test::Blob()>("recorded", "blob");
    with.say("result_inline", with.called());
    CHECK(blob.get().bytes == counted(999));
    auto bytes = with.root.call<Bytes()>("recorded", "g");
    with.say("result_chunks", with.called());
    CHECK(bytes.get() == counted(17'001));
    auto fails = with.root.call<int(int)>("recorded", "f", 1);
    with.say("error", with.called());
    CHECK_THAT(outcome(std::move(fails)).message(), Contains("it broke"));

    // A pong keeps it alive.
    for (int second = 0; second < 10; ++second) {
      with.world.run_for(1s);
      with.say("pong");
    }
    auto size = with.root.call<std::size_t(Bytes)>("recorded", "size", counted(1'000'000));
    const std::uint64_t id = with.called();
    with.say("credit_none", id);
    with.say("credit_all", id);
    with.say("error", id);
    CHECK(outcome(std::move(size)).code() == ErrorCode::remote_error);
    auto unanswered = with.root.call<int(int)>("recorded", "f", 1);
    with.say("goodbye");
    { const RawPeer gone = std::move(with.peer); }
    CHECK_THAT(outcome(std::move(unanswered)).message(), Contains("recorded shuts down"));
  }
}

TEST_CASE("promise 10: what this version sends is recorded") {
  const auto folder = std::filesystem::path(BATCHRPC_SOURCE_DIR) / "tests/recorded" /
                      (std::to_string(wire::kMajor) + "." + std::to_string(wire::kMinor));
  INFO("scripts/record_frames.sh records it");
  CHECK(std::filesystem::exists(folder / "hello.bin"));
}

/// The frame of a later minor version: its body has more fields, its header flags that nobody
/// knows.
template <class... Fields>
std::vector<Word> later_frame(wire::FrameHeader header, const Fields&... fields) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<Fields..., std::string, std::uint64_t, std::vector<std::string>>(
      encoder, wire::kBodyPointer, fields..., std::string("more"), ~std::uint64_t{0},
      std::vector<std::string>{"and", "more"});
  header.flags |= 0x400;
  wire::finish_frame(encoder, header);
  return encoder.words();
}

TEST_CASE("promise 10: a peer of a later minor version, with fields that nobody knows, is served") {
  Conversation with({});
  const std::string name = "later";
  with.peer.send(later_frame({.kind = FrameKind::hello, .flags = wire::kJoins}, wire::kMajor,
                             std::uint16_t{9}, std::int32_t{-1}, std::uint64_t{41},
                             std::uint64_t{43}, std::uint64_t{0}, name, std::string()));
  CHECK(with.peer.frame(FrameKind::hello));
  with.peer.send(later_frame({.kind = FrameKind::define}, std::uint32_t{0}, std::string("twice"),
                             std::string(signature<int, int>())));
  with.peer.send(later_frame({.kind = FrameKind::call, .id = 101}, 21));
  CHECK(with.reply<int>(101) == 42);
  // Kinds that have a meaning by now, for calls that there are not.
  for (const FrameKind kind :
       {FrameKind::cancel, FrameKind::credit, FrameKind::acknowledge, FrameKind::pong}) {
    with.peer.send(wire::plain_frame({.kind = kind, .flags = 0x400, .id = 5, .value = 7}));
  }
  with.peer.send(wire::plain_frame({.kind = FrameKind::ping, .flags = 0x400}));
  CHECK(with.peer.frame(FrameKind::pong));
  with.peer.send(later_frame({.kind = FrameKind::goodbye}, std::uint16_t{99}, std::string("bye")));
  CHECK_FALSE(with.peer.closed());
}

TEST_CASE("promise 10: an error of a kind that only a later version knows ends the call with it") {
  Conversation with(recorded_versions().back());
  with.introduce();
  with.say("join");
  with.peer.frames();
  auto call = with.root.call<int(int)>("recorded", "f", 1);
  with.peer.send(later_frame({.kind = FrameKind::error, .id = with.called()}, std::uint16_t{77},
                             true, std::string("it is Tuesday"), std::string("Tuesday"),
                             std::uint64_t{0}));
  const auto result = outcome(std::move(call));
  CHECK(static_cast<std::uint16_t>(result.code()) == 77);
  CHECK_THAT(result.message(), Contains("it is Tuesday"));
}

TEST_CASE("promise 10: another major version is refused, with both versions in the message") {
  const std::string own = std::to_string(wire::kMajor) + "." + std::to_string(wire::kMinor);
  Conversation with({});
  with.peer.send(wire::hello_frame({.major = 9, .minor = 3, .name = "newer"}));
  const auto goodbye = with.peer.frame(FrameKind::goodbye);
  REQUIRE(goodbye);
  CHECK_THAT(wire::read_goodbye(wire::parse_frame(*goodbye)).reason,
             Contains("9.3") && Contains("newer") && Contains(own));
  CHECK(with.peer.closed());
  const Node other = with.world.join("other");
  CHECK(other.call<int(int)>("root", "twice", 4).get() == 8);
}

TEST_CASE("promise 10: who joins where the root has another major version is told of both") {
  const std::string own = std::to_string(wire::kMajor) + "." + std::to_string(wire::kMinor);
  const test::VirtualWorld world;
  const auto transport = world.network->transport(world.loop, "newer");
  std::vector<std::unique_ptr<Stream>> streams;
  const auto listener =
      transport->listen(Address::parse("inproc://world"), [&](std::unique_ptr<Stream> stream) {
        const auto hello = wire::hello_frame({.major = 9, .minor = 3, .name = "newer"});
        const std::array<std::span<const std::byte>, 1> buffers{std::as_bytes(std::span(hello))};
        CHECK(stream->try_write(buffers).bytes == hello.size() * sizeof(Word));
        streams.push_back(std::move(stream));
      });
  try {
    (void)world.join("late");
    FAIL("it has joined");
  } catch (const JoinFailed& error) {
    CHECK_THAT(error.what(), Contains("9.3") && Contains("newer") && Contains(own));
  }
}

}  // namespace version_skew_test
}  // namespace batchrpc
