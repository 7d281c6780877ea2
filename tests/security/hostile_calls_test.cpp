#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "batchrpc/batchrpc.hpp"
#include "largest_allocation.hpp"
#include "long_tests.hpp"
#include "node/node_core.hpp"
#include "node/raw_peer.hpp"
#include "peers/member.hpp"
#include "rref/rref_messages.hpp"

// Calls of every function that a node has, its own included, with arguments that no caller of ours
// would send: each reaches its function's decoder, and the node lives on.

namespace hostile {

class Thing {
 public:
  Thing(std::string name, std::vector<int> numbers)
      : name_(std::move(name)), numbers_(std::move(numbers)) {}
  std::size_t put(const batchrpc::Bytes& bytes, const std::map<std::string, int>& more) {
    return name_.size() + numbers_.size() + bytes.size() + more.size();
  }

 private:
  std::string name_;
  std::vector<int> numbers_;
};

}  // namespace hostile

namespace batchrpc {
namespace hostile_calls_test {

using namespace std::chrono_literals;
using detail::ObjectId;
using hostile::Thing;
using test::RawPeer;
using wire::FrameKind;
using More = std::map<std::string, int>;

/// A function of the node, and a correct call of it.
struct Target {
  std::string name;
  std::string signature;
  std::vector<Word> call;
  std::vector<Bytes> payloads;
};

template <class R, class... Args>
Target target(std::uint32_t number, std::string name, const Args&... args) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<Args...>(encoder, wire::kBodyPointer, args...);
  wire::finish_frame(encoder, {.kind = FrameKind::call, .number = number});
  return {std::move(name), std::string(signature<R, Args...>()), encoder.words(),
          encoder.payloads()};
}

/// Of the node of that incarnation, for a peer of that one.
std::vector<Target> targets(std::uint64_t incarnation, std::uint64_t peer) {
  const ObjectId object{.owner = incarnation, .creator = peer, .number = 1};
  const detail::Fork fork{.parent = incarnation, .number = 1};
  const detail::NoObject none{object, std::uint16_t{9}, "why", "std::logic_error", "what made it"};
  using Updates = std::vector<detail::HoldUpdate>;
  const Member member{.name = "raw",
                      .rank = -1,
                      .incarnation = 3,
                      .host = "here",
                      .addresses = {"inproc://raw", "tcp://127.0.0.1:1"}};
  const std::string put = "batchrpc.method:hostile::Thing::put";
  return {target<void>(0, "batchrpc.joined", member),
          target<void>(1, "batchrpc.left", std::string("guest"), std::uint64_t{5},
                       std::string("it was tired")),
          target<void>(2, "batchrpc.create:hostile::Thing", object, std::string("thing"),
                       std::vector<int>{1, 2, 3}),
          target<std::size_t>(3, put, object, Bytes::allocate(100), More{{"a", 1}, {"b", 2}}),
          target<std::size_t>(4, put, object, Bytes::allocate(20'000), More{{"a", 1}, {"b", 2}}),
          target<void>(5, std::string(detail::kHold),
                       Updates{{object, detail::HoldUpdate::hold, fork, "raw"},
                               {object, detail::HoldUpdate::list_begins, {}, {}},
                               {object, detail::HoldUpdate::hold, {77, 1}, "guest"},
                               {object, detail::HoldUpdate::list_ends, {}, {}},
                               {object, detail::HoldUpdate::release, {}, {}}}),
          target<void>(6, std::string(detail::kArrived), std::vector<detail::Fork>{fork}),
          target<void>(7, std::string(detail::kAbandon), none),
          target<std::string>(8, "shout", std::string("quiet"), std::vector<std::string>{"a", "b"},
                              std::optional<double>(2.5)),
          target<JoinReply>(9, "batchrpc.join", Member{.name = "guest", .incarnation = 5},
                            std::int32_t{0}),
          target<std::vector<detail::Fork>>(
              10, std::string(detail::kAsk),
              std::vector<detail::ForkQuestion>{{object, fork}, {object, {77, 2}}}),
          target<void>(11, std::string(detail::kNone), std::vector<detail::NoObject>{none}),
          target<void>(12, std::string(detail::kReady), object)};
}

class Attack {
 public:
  Attack(const Node& node, std::uint64_t seed)
      : random_(seed), incarnation_(detail::NodeAccess::core(node)->incarnation()) {}

  /// Sends calls with changed arguments, and counts those that were parsed: the frames are whole,
  /// and the node reads what it is sent until it closes the connection.
  void run(const test::VirtualWorld& world, int calls) {
    for (int sent = 0; sent < calls;) {
      RawPeer peer(world);
      REQUIRE(peer.connected());
      ++connections;
      peer.say_hello("raw" + std::to_string(connections % 50), 2 * connections + 1);
      targets_ = targets(incarnation_, 2 * connections + 1);
      for (std::uint32_t i = 0; i < targets_.size(); ++i) {
        peer.send(wire::definition_frame(
            {.number = i, .name = targets_[i].name, .signature = targets_[i].signature}));
      }
      for (int i = 0; i < 500 && sent < calls && !peer.closed(); ++i, ++sent)
        send_one(peer);
      count_replies(peer);
      world.run_for(any(10) == 0 ? 20s : 10ms);  // what waits for an object, or a peer, is over
    }
  }

  std::uint64_t connections = 0;
  int parsed = 0;
  int answered = 0;

 private:
  std::size_t any(std::size_t count) { return random_() % count; }

  void send_one(RawPeer& peer) {
    const Target& target = targets_[any(targets_.size())];
    std::vector<Word> call = target.call;
    wire::set_id(call, ++id_);
    // The arguments only: so the envelope stays one.
    const std::size_t first = wire::kEnvelopeWords;
    for (std::size_t changes = any(5); changes > 0; --changes) {
      Word& word = call[first + any(call.size() - first)];
      switch (any(4)) {
        case 0:
          word = random_();
          break;
        case 1:
          word += any(3) - 1;
          break;
        default:
          word ^= Word{1} << any(64);
      }
    }
    if (wire::has_inline_payloads(call)) {
      for (const Bytes& payload : target.payloads)
        call.resize(call.size() + wire::padded(payload.size()) / sizeof(Word));
    }
    peer.send(call);
    if (peer.closed()) return;
    ++parsed;
    const bool chunked = !target.payloads.empty() && !wire::has_inline_payloads(call);
    if (!chunked || any(8) == 0) return;  // now and then the payload never comes
    auto chunk = wire::plain_frame(
        {.kind = FrameKind::chunk, .id = id_, .value = target.payloads[0].size()});
    chunk.resize(chunk.size() + wire::padded(target.payloads[0].size()) / sizeof(Word));
    peer.send(chunk);
  }
  void count_replies(RawPeer& peer) {
    for (const auto& words : peer.frames()) {
      const FrameKind kind = wire::parse_frame(words).header.kind;
      if (kind == FrameKind::result || kind == FrameKind::error) ++answered;
    }
  }

  std::mt19937_64 random_;
  const std::uint64_t incarnation_;
  std::vector<Target> targets_;
  std::uint64_t id_ = 0;
};

Node make_node(const test::VirtualWorld& world) {
  NodeOptions options = world.options("root");
  options.logging.level = LogLevel::off;
  options.limits.max_frame_bytes = 64 * 1024;
  options.limits.max_payload_bytes = 64 * 1024;
  Node node(options);
  node.expose_class<Thing(std::string, std::vector<int>)>();
  node.expose<&Thing::put>();
  node.expose("shout", [](const std::string& text, const std::vector<std::string>& more,
                          std::optional<double> factor) {
    return text + std::to_string(more.size()) + (factor ? "!" : "?");
  });
  return node;
}

void a_new_node_joins_and_calls(const test::VirtualWorld& world) {
  const Node peer = world.join("peer");
  const RRef<Thing> thing = peer.create<Thing>("root", std::string("abc"), std::vector<int>{1});
  CHECK(thing.call<&Thing::put>(Bytes::allocate(30'000), More{{"a", 1}}).get() == 30'005);
  CHECK(peer.call<std::string(std::string, std::vector<std::string>, std::optional<double>)>(
                "root", "shout", "a", std::vector<std::string>{"b"}, std::nullopt)
            .get() == "a1?");
}

TEST_CASE("calls with any arguments, of the library's functions too, leave a node as it is") {
  const test::VirtualWorld world;
  const Node node = make_node(world);
  a_new_node_joins_and_calls(world);
  test::reset_largest_allocation();
  const int calls = test::times_on_one_thread(100'000, 1'000'000);
  Attack attack(node, 31);
  for (int part = 0; part < 10; ++part) {
    attack.run(world, calls / 10);
    a_new_node_joins_and_calls(world);
  }
  CHECK(attack.parsed >= calls - static_cast<int>(attack.connections));
  CHECK(attack.answered >= attack.parsed / 2);
  CHECK(test::largest_allocation() <= std::size_t{80} << 20);
}

}  // namespace hostile_calls_test
}  // namespace batchrpc
