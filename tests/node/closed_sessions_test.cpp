#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/node/node_access.hpp"
#include "largest_allocation.hpp"
#include "node/node_core.hpp"
#include "node/raw_target.hpp"
#include "session/session.hpp"

// What happens when a session ends, whatever its peer has left and however little memory there is.

namespace closed_sessions {

class Thing {
 public:
  void put(const batchrpc::Bytes& bytes) { size += bytes.size(); }
  static inline std::size_t size = 0;
};

}  // namespace closed_sessions

namespace batchrpc {
namespace closed_sessions_test {

using namespace std::chrono_literals;
using closed_sessions::Thing;
using detail::ObjectId;
using test::define;
using test::RawPeer;
using wire::FrameKind;

constexpr std::uint64_t kPeer = 1;  // its incarnation

std::vector<Word> put(const ObjectId& object, wire::FrameHeader header, std::size_t size,
                      std::size_t metadata = 0) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<ObjectId, Bytes>(encoder, wire::kBodyPointer, object, Bytes::allocate(size));
  if (metadata > 0) {
    wire::CallContextBody context;
    context.metadata.assign(metadata, {"key", "value"});
    wire::add_context(encoder, context);
  }
  header.kind = FrameKind::call;
  wire::finish_frame(encoder, header);
  return encoder.words();
}

/// A node with calls of a peer in all stages, and one of its own.
struct Scene {
  explicit Scene(LogLevel level = LogLevel::off)
      : root([&] {
          NodeOptions options = world.options("root");
          options.logging.level = level;
          return Node(options);
        }()) {
    root.expose_class<Thing()>();
    root.expose<&Thing::put>();
    root.expose("twice", test::twice);
    root.expose("keep", [this](int) { return never.emplace_back().get_future(); });
    object = {
        .owner = detail::NodeAccess::core(root)->incarnation(), .creator = kPeer, .number = 1};
    peer.say_hello("raw", kPeer);
    peer.send(define(0, "batchrpc.create:closed_sessions::Thing", signature<void, ObjectId>()));
    peer.send(define(1, "batchrpc.method:closed_sessions::Thing::put",
                     signature<void, ObjectId, Bytes>()));
    peer.send(define(2, "keep", signature<int, int>()));
    peer.send(test::call_frame({.number = 0, .id = 1}, object));
    peer.send(test::call_frame({.number = 2, .id = 2}, 1));
    peer.send(put(object, {.number = 1, .id = 3}, 100'000));  // its payload never comes
    peer.send(put(object, {.flags = wire::kNoReply, .number = 1, .id = 4}, 0));
    Thing::size = 0;
  }

  test::VirtualWorld world;
  std::vector<Promise<int>> never;
  Node root;
  ObjectId object;
  RawPeer peer{world};
};

TEST_CASE("an ordered notification with wrong metadata that waits at the end costs nobody else") {
  Scene scene;
  scene.peer.send(put(scene.object, {.flags = wire::kNoReply, .number = 1, .id = 5}, 0,
                      wire::kMaxMetadata + 1));
  scene.peer.send(put(scene.object, {.flags = wire::kNoReply, .number = 1, .id = 6}, 0));
  CHECK_FALSE(scene.peer.closed());
  scene.peer.send(wire::goodbye_frame({}));
  scene.peer.send({~Word{0}});  // no frame
  CHECK(scene.peer.closed());
  test::another_peer_is_served(scene.world);
}

TEST_CASE("a session ends without memory, and its node lives") {
  const bool protocol_error = GENERATE(true, false);
  int failures = 0;
  for (std::size_t n = 1;; ++n) {
    CAPTURE(n);
    Scene scene;
    scene.world.network->set_link({.latency = 1ms, .capacity = 16 * 1024});
    const Node joined = scene.world.join("joined");
    joined.expose("never", [&scene](int) { return scene.never.emplace_back().get_future(); });
    const auto thing = joined.create<Thing>("root");
    Future<int> own = scene.root.call<int(int)>("joined", "never", 1);
    Future<int> other = joined.call<int(int)>("root", "keep", 1);
    scene.world.run_for(10ms);
    Future<void> large = thing.call<&Thing::put>(Bytes::allocate(1'000'000));
    Future<void> ordered = thing.call<&Thing::put>(Bytes::allocate(10));
    scene.world.run_for(5ms);
    CHECK_FALSE(ordered.ready());
    const auto session = detail::NodeAccess::core(scene.root)->peers().session("joined");
    test::fail_allocation(n);
    if (protocol_error) {
      session->on_closed("test", true);
    } else {
      session->connection().break_off("test");
    }
    const bool failed = test::allocation_failed();
    scene.world.run_for(10s);
    if (protocol_error) CHECK(own.ready());
    test::another_peer_is_served(scene.world);
    if (!failed) break;
    ++failures;
  }
  CHECK(failures > 5);
}

TEST_CASE("without memory for its error a call gets no answer, and its node lives") {
  int failures = 0;
  for (std::size_t n = 1;; ++n) {
    CAPTURE(n);
    Scene scene;
    scene.root.expose("fail",
                      [n] {
                        const std::runtime_error error("this text is too long for a short string");
                        test::fail_allocation(n);
                        throw error;
                      },
                      {.short_handler = true});
    const Node joined = scene.world.join("joined");
    const auto result =
        test::outcome(joined.peer("root").with({.timeout = 1s}).call<void()>("fail"));
    const bool failed = test::allocation_failed();
    CHECK_FALSE(result);
    test::another_peer_is_served(scene.world);
    if (!failed) break;
    ++failures;
  }
  CHECK(failures > 3);
}

/// A node with many calls of a peer that are being answered, and learn of their cancellation.
struct Crowd {
  static constexpr int kCalls = 2000;

  Crowd() {
    root->expose("wait", [this](int number) {
      CallContext::current()->when_cancelled().then([this, number](const Result<void>& result) {
        if (!result) return;
        cancelled.push_back(number);
        if (cancelled.size() == 1) world.loop->post([this] { before_others = cancelled.size(); });
      });
      return never.emplace_back().get_future();
    });
    peer.say_hello("raw", kPeer);
    peer.send(define(0, "wait", signature<int, int>()));
    for (int i = 0; i < kCalls; ++i)
      peer.send(test::call_frame({.number = 0, .id = static_cast<std::uint64_t>(i + 1)}, i));
  }
  void check_that_all_are_cancelled() const {
    CHECK(cancelled.size() == kCalls);
    CHECK(std::is_sorted(cancelled.begin(), cancelled.end()));
  }

  test::VirtualWorld world;
  std::vector<int> cancelled;
  std::size_t before_others = 0;  // how many were cancelled before the loop did something else
  std::deque<Promise<int>> never;
  std::optional<Node> root{world.root()};
  RawPeer peer{world};
};

TEST_CASE("the calls of a session that ends are cancelled some at a time, in their order") {
  Crowd crowd;
  crowd.peer.send({~Word{0}});  // no frame
  CHECK(crowd.peer.closed());
  CHECK(crowd.before_others > 0);
  CHECK(crowd.before_others <= 256);
  crowd.check_that_all_are_cancelled();
}

TEST_CASE("the calls of a session that ends with its node are all cancelled") {
  Crowd crowd;
  crowd.root.reset();
  crowd.check_that_all_are_cancelled();
}

}  // namespace closed_sessions_test
}  // namespace batchrpc
