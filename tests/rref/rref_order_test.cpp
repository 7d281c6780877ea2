#include <catch2/catch.hpp>
#include <mutex>

#include "node/node_core.hpp"
#include "node/raw_peer.hpp"
#include "node/real_nodes.hpp"
#include "rref/objects.hpp"

// Methods start in the order in which they were called, whatever is large among them.

namespace objects {

/// Writes down, for all of its kind, what is done to it.
class Ledger {
 public:
  explicit Ledger(const batchrpc::Bytes& first) { write("made", first.size()); }
  std::size_t put(const batchrpc::Bytes& bytes) { return write("put", bytes.size()); }
  std::size_t note(int n) { return write("note", static_cast<std::size_t>(n)); }

  std::size_t hidden(const batchrpc::Bytes& bytes) { return bytes.size(); }  // not exposed

  static std::vector<std::string> take_lines() {
    const std::lock_guard lock(mutex);
    return std::exchange(lines, {});
  }

 private:
  static std::size_t write(const std::string& what, std::size_t n) {
    const std::lock_guard lock(mutex);
    lines.push_back(what + " " + std::to_string(n));
    return n;
  }

  static inline std::mutex mutex;
  static inline std::vector<std::string> lines;
};

/// Counts those that were made.
class Late {
 public:
  explicit Late(int value) : value_(value) { ++made; }
  int use() { return value_; }
  static inline int made = 0;

 private:
  int value_;
};

}  // namespace objects

namespace batchrpc {
namespace rref_order_test {

using namespace std::chrono_literals;
using objects::Counter;
using objects::Ledger;
using test::ObjectWorld;
using test::outcome;
using Lines = std::vector<std::string>;

constexpr std::size_t kLarge = std::size_t{1} << 20;

void expose_ledger(const Node& node) {
  node.expose_class<Ledger(Bytes)>();
  node.expose<&Ledger::put>();
  node.expose<&Ledger::note>();
  Ledger::take_lines();
}

/// Links that take 100 ms for each 256 KiB.
struct SlowWorld : ObjectWorld {
  SlowWorld() {
    world.network->set_link({.latency = 100ms});
    expose_ledger(owner);
  }
  Node fourth = [this] {
    world.network->set_link({.latency = 100ms});
    return world.join("fourth");
  }();
};

TEST_CASE("a method with a large argument starts before those that were called after it") {
  const SlowWorld nodes;
  const RRef<Ledger> ledger = nodes.fourth.create<Ledger>("owner", Bytes::allocate(1));
  ledger.call<&Ledger::put>(Bytes::allocate(kLarge));
  ledger.call<&Ledger::note>(1);
  ledger.call<&Ledger::put>(Bytes::allocate(2 * kLarge));
  ledger.call<&Ledger::put>(Bytes::allocate(100'000));  // its last chunk is there first
  ledger.call<&Ledger::note>(2);
  CHECK(ledger.call<&Ledger::note>(3).get() == 3);
  CHECK(Ledger::take_lines() ==
        Lines{"made 1", "put 1048576", "note 1", "put 2097152", "put 100000", "note 2", "note 3"});
}

TEST_CASE("methods wait for a creation with a large argument, for longer than for none") {
  const SlowWorld nodes;
  nodes.third.expose("use", [](const RRef<Ledger>& used) { return used.call<&Ledger::note>(2); });
  const RRef<Ledger> ledger = nodes.fourth.create<Ledger>("owner", Bytes::allocate(64 * kLarge));
  Future<std::size_t> own = ledger.call<&Ledger::note>(1);
  // The third node's call comes without anything before it.
  Future<std::size_t> others = nodes.fourth.call<std::size_t(RRef<Ledger>)>("third", "use", ledger);
  nodes.world.run_for(15s);
  CHECK_FALSE(own.ready());
  CHECK_FALSE(others.ready());
  CHECK(own.get() == 1);
  CHECK(others.get() == 2);
  const Lines lines = Ledger::take_lines();
  REQUIRE_FALSE(lines.empty());
  CHECK(lines.front() == "made 67108864");
}

TEST_CASE("a handle that is dropped behind a large call lets it run") {
  const SlowWorld nodes;
  Future<std::size_t> put;
  {
    const RRef<Ledger> ledger = nodes.fourth.create<Ledger>("owner", Bytes::allocate(1));
    put = ledger.call<&Ledger::put>(Bytes::allocate(kLarge));
  }
  CHECK(put.get() == kLarge);
}

TEST_CASE("a thousand methods behind a large one start in order, and let others pass meanwhile") {
  const SlowWorld nodes;
  const RRef<Ledger> ledger = nodes.fourth.create<Ledger>("owner", Bytes::allocate(1));
  ledger.call<&Ledger::put>(Bytes::allocate(4 * kLarge));
  Lines expected{"made 1", "put 4194304"};
  std::vector<Future<std::size_t>> notes;
  for (int i = 0; i < 1000; ++i) {
    notes.push_back(ledger.call<&Ledger::note>(i));
    expected.push_back("note " + std::to_string(i));
  }
  when_all(std::move(notes)).get();
  CHECK(Ledger::take_lines() == expected);
}

TEST_CASE("a large call keeps neither other objects nor other callers nor functions waiting") {
  const SlowWorld nodes;
  nodes.owner.expose("small", [] { return 1; });
  nodes.third.expose("use", [](const RRef<Ledger>& used) { return used.call<&Ledger::note>(7); });
  const RRef<Ledger> ledger = nodes.fourth.create<Ledger>("owner", Bytes::allocate(1));
  const RRef<Ledger> other = nodes.fourth.create<Ledger>("owner", Bytes::allocate(1));
  CHECK(ledger.call<&Ledger::note>(1).get() == 1);
  Future<std::size_t> put = ledger.call<&Ledger::put>(Bytes::allocate(16 * kLarge));
  Future<std::size_t> behind = ledger.call<&Ledger::note>(2);
  CHECK(other.call<&Ledger::note>(1).get() == 1);
  CHECK(nodes.fourth.call<int()>("owner", "small").get() == 1);
  CHECK(nodes.fourth.call<std::size_t(RRef<Ledger>)>("third", "use", ledger).get() == 7);
  CHECK_FALSE(put.ready());
  CHECK_FALSE(behind.ready());
  CHECK(put.get() == 16 * kLarge);
  CHECK(behind.get() == 2);
}

TEST_CASE(
    "a large call that breaks off frees its object, and its caller's calls behind it never run") {
  const SlowWorld nodes;
  nodes.third.expose("use", [](const RRef<Ledger>& used) { return used.call<&Ledger::note>(7); });
  const RRef<Ledger> ledger = nodes.fourth.create<Ledger>("owner", Bytes::allocate(1));
  const RRef<Ledger> kept = nodes.third.create<Ledger>("owner", Bytes::allocate(1));
  CHECK(nodes.fourth.call<std::size_t(RRef<Ledger>)>("third", "use", ledger).get() == 7);
  Future<std::size_t> put = ledger.call<&Ledger::put>(Bytes::allocate(16 * kLarge));
  Future<std::size_t> behind = ledger.call<&Ledger::note>(2);
  nodes.world.run_for(500ms);
  Ledger::take_lines();
  nodes.world.kill("fourth");
  nodes.world.run_for(10s);
  CHECK(Ledger::take_lines().empty());
  CHECK(outcome(std::move(put)).code() == ErrorCode::not_sent);  // not as a whole
  CHECK(outcome(std::move(behind)).code() == ErrorCode::peer_lost);
  CHECK(kept.call<&Ledger::note>(4).get() == 4);
}

TEST_CASE("a large call whose connection breaks goes on by the next, and keeps its place") {
  const SlowWorld nodes;
  const RRef<Ledger> ledger = nodes.fourth.create<Ledger>("owner", Bytes::allocate(1));
  CHECK(ledger.call<&Ledger::note>(1).get() == 1);
  Future<std::size_t> put = ledger.call<&Ledger::put>(Bytes::allocate(16 * kLarge));
  Future<std::size_t> behind = ledger.call<&Ledger::note>(2);
  nodes.world.run_for(500ms);
  nodes.world.network->cut("fourth", "owner");
  CHECK(behind.get() == 2);
  CHECK(put.ready());
  CHECK(put.get() == 16 * kLarge);
}

TEST_CASE("calls of an object whose creation breaks off end, and it is never made after that") {
  const SlowWorld nodes;
  nodes.third.expose("use", [](const RRef<Ledger>& used) { return used.call<&Ledger::note>(7); });
  const RRef<Ledger> ledger = nodes.fourth.create<Ledger>("owner", Bytes::allocate(16 * kLarge));
  Future<std::size_t> used = nodes.fourth.call<std::size_t(RRef<Ledger>)>("third", "use", ledger);
  nodes.world.run_for(500ms);
  CHECK_FALSE(used.ready());
  nodes.world.kill("fourth");
  CHECK_FALSE(outcome(ledger.call<&Ledger::note>(1)));
  nodes.world.run_for(15s);
  CHECK(used.ready());
  CHECK(Ledger::take_lines().empty());
}

TEST_CASE("a method that times out half sent never runs, and those behind it do") {
  const SlowWorld nodes;
  const RRef<Ledger> ledger = nodes.fourth.create<Ledger>("owner", Bytes::allocate(1));
  Future<std::size_t> put =
      ledger.with({.timeout = 2s}).call<&Ledger::put>(Bytes::allocate(64 * kLarge));
  Future<std::size_t> behind = ledger.call<&Ledger::note>(2);
  nodes.world.run_for(1s);
  CHECK_FALSE(behind.ready());
  const auto result = outcome(std::move(put));
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK_FALSE(test::may_have_run(result.error()));
  CHECK(behind.get() == 2);
  CHECK(Ledger::take_lines() == Lines{"made 1", "note 2"});
}

/// Takes handles, and never lets the payloads beside them come.
struct Holding {
  std::shared_ptr<std::vector<RRef<Counter>>> taken;
  int operator()(RRef<Counter> handle, const Bytes& bytes) const {
    taken->push_back(std::move(handle));
    return static_cast<int>(bytes.size());
  }
  static detail::ReceivePlan announce(Decoder& /*arguments*/,
                                      const std::shared_ptr<detail::TransferGate>& /*gate*/) {
    return {.held = true};
  }
};

TEST_CASE("a held call that carries a handle keeps its object alive for as long as it may come") {
  ObjectWorld nodes;
  const Holding holding{std::make_shared<std::vector<RRef<Counter>>>()};
  nodes.third.expose("hold", holding);
  auto call = nodes.user.peer("third")
                  .with({.timeout = 2s})
                  .call<int(RRef<Counter>, Bytes)>("hold", nodes.user.create<Counter>("owner", 1),
                                                   Bytes::allocate(16 * kLarge));
  nodes.world.run_for(1s);
  CHECK(holding.taken->empty());
  const auto result = outcome(std::move(call));
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK(Counter::alive == 1);
  CHECK_FALSE(test::may_have_run(result.error()));
  nodes.settle();
  CHECK(holding.taken->empty());
  CHECK(Counter::alive == 0);
}

TEST_CASE("a peer that falls silent in the middle of large calls frees their objects") {
  const SlowWorld nodes;
  nodes.third.expose("use", [](const RRef<Ledger>& used) { return used.call<&Ledger::note>(7); });
  const RRef<Ledger> made = nodes.fourth.create<Ledger>("owner", Bytes::allocate(1));
  CHECK(nodes.fourth.call<std::size_t(RRef<Ledger>)>("third", "use", made).get() == 7);
  const RRef<Ledger> making = nodes.fourth.create<Ledger>("owner", Bytes::allocate(16 * kLarge));
  made.call<&Ledger::put>(Bytes::allocate(16 * kLarge));
  made.call<&Ledger::note>(1);
  Future<std::size_t> used = nodes.fourth.call<std::size_t(RRef<Ledger>)>("third", "use", making);
  Future<std::size_t> other = nodes.fourth.call<std::size_t(RRef<Ledger>)>("third", "use", made);
  nodes.world.run_for(500ms);
  CHECK(other.get() == 7);
  nodes.world.network->isolate("fourth");
  nodes.world.run_for(30s);
  CHECK(used.ready());
}

/// The code of the error with which the owner answers a call, or nothing.
std::optional<ErrorCode> refusal(test::RawPeer& peer) {
  const auto words = peer.frame(wire::FrameKind::error);
  if (!words) return std::nullopt;
  return static_cast<ErrorCode>(wire::read_error(wire::parse_frame(*words)).code);
}

template <class... Args>
std::vector<Word> call_frame(std::uint32_t function, std::uint64_t id, const Args&... args) {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<Args...>(encoder, wire::kBodyPointer, args...);
  wire::finish_frame(encoder, {.kind = wire::FrameKind::call, .number = function, .id = id});
  return encoder.words();
}

TEST_CASE("a creation that comes after its calls were told that there is none is refused") {
  const ObjectWorld nodes;
  nodes.owner.expose_class<objects::Late(int)>();
  nodes.owner.expose<&objects::Late::use>();
  test::RawPeer peer(nodes.world);
  peer.say_hello();
  using detail::ObjectId;
  peer.send(wire::definition_frame({.number = 0,
                                    .name = "batchrpc.create:objects::Late",
                                    .signature = std::string(signature<void, ObjectId, int>())}));
  peer.send(wire::definition_frame({.number = 1,
                                    .name = "batchrpc.method:objects::Late::use",
                                    .signature = std::string(signature<int, ObjectId>())}));
  const ObjectId object{
      .owner = detail::NodeAccess::core(nodes.owner)->incarnation(), .creator = 1, .number = 1};
  peer.send(call_frame(1, 0, object));
  for (int second = 0; second < 11; ++second) {
    CHECK(refusal(peer) == (second == 10 ? std::optional(ErrorCode::not_found) : std::nullopt));
    peer.send(wire::plain_frame({.kind = wire::FrameKind::pong}));
    nodes.world.run_for(1s);
  }
  peer.send(call_frame(0, 1, object, 5));
  CHECK(refusal(peer) == ErrorCode::not_found);
  CHECK(objects::Late::made == 0);
}

TEST_CASE("a node ends while large calls of its objects come in") {
  for (const int wait : {100, 200, 300, 500}) {
    SlowWorld nodes;
    const RRef<Ledger> ledger = nodes.fourth.create<Ledger>("owner", Bytes::allocate(4 * kLarge));
    Future<std::size_t> put = ledger.call<&Ledger::put>(Bytes::allocate(4 * kLarge));
    Future<std::size_t> behind = ledger.call<&Ledger::note>(2);
    nodes.world.run_for(std::chrono::milliseconds(wait));
    nodes.owner.shutdown(0s);
    CHECK_FALSE(outcome(std::move(put)));
    CHECK_FALSE(outcome(std::move(behind)));
  }
}

TEST_CASE("large calls of what is not exposed fail, those of the object go on") {
  const SlowWorld nodes;
  const RRef<Counter> counter = nodes.fourth.create<Counter>("owner", 5);
  const RRef<Ledger> ledger = nodes.fourth.create<Ledger>("owner", Bytes::allocate(1));
  const RRef<Ledger> nowhere = nodes.fourth.create<Ledger>("third", Bytes::allocate(kLarge));
  Future<std::size_t> put = ledger.call<&Ledger::hidden>(Bytes::allocate(kLarge));
  Future<std::size_t> note = ledger.call<&Ledger::note>(2);
  CHECK(outcome(std::move(put)).code() == ErrorCode::not_found);
  CHECK(note.get() == 2);
  CHECK(outcome(nowhere.call<&Ledger::note>(1)).code() == ErrorCode::not_found);
  CHECK(counter.call<&Counter::add>(1).get() == 6);
}

TEST_CASE("over sockets, too, methods start in the order of their calls", "[threads]") {
  for (const auto transport : {test::Sockets::tcp, test::Sockets::unix_only}) {
    const test::RealPair pair(4, transport);
    expose_ledger(pair.a);
    const RRef<Ledger> ledger = pair.b.create<Ledger>("a", Bytes::allocate(8 * kLarge));
    Lines expected{"made 8388608"};
    for (int i = 0; i < 10; ++i) {
      ledger.call<&Ledger::note>(i);
      ledger.call<&Ledger::put>(Bytes::allocate(8 * kLarge));
      expected.insert(expected.end(), {"note " + std::to_string(i), "put 8388608"});
    }
    CHECK(ledger.call<&Ledger::note>(10).get() == 10);
    expected.emplace_back("note 10");
    CHECK(Ledger::take_lines() == expected);
  }
}

TEST_CASE("over sockets, too, a large call that breaks off frees its object", "[threads]") {
  const test::RealPair pair;
  expose_ledger(pair.a);
  const RRef<Ledger> ledger = pair.a.own(std::make_shared<Ledger>(Bytes::allocate(1)));
  pair.a.expose("give", [&ledger] { return ledger; });
  for (int round = 0; round < 10; ++round) {
    Node guest(test::real_joining(pair.a, "guest" + std::to_string(round), 1));
    const auto theirs = guest.call<RRef<Ledger>()>("a", "give").get();
    theirs.call<&Ledger::put>(Bytes::allocate(64 * kLarge));
    theirs.call<&Ledger::note>(round);
    guest.shutdown(0s);
    const auto ours = pair.b.call<RRef<Ledger>()>("a", "give").get();
    CHECK(ours.call<&Ledger::note>(100).get() == 100);
  }
}

TEST_CASE("a handle that its owner hears of before it exposes anything keeps the object alive") {
  test::VirtualWorld world;
  NodeOptions options = world.options("root");
  options.expose_within = std::chrono::seconds(5);
  const Node root(options);
  const Node first = world.join("first");
  const Node second = world.join("second");
  RRef<objects::Counter> kept;
  second.expose("take", [&kept](RRef<objects::Counter> handle) { kept = std::move(handle); });
  {
    const auto handle = first.create<objects::Counter>("root", 1);
    first.call<void(RRef<objects::Counter>)>("second", "take", handle).get();
    root.expose_class<objects::Counter(int)>();
    root.expose<&objects::Counter::add>();
    CHECK(handle.call<&objects::Counter::add>(1).get() == 2);
  }
  world.run_for(std::chrono::seconds(1));
  CHECK(kept.call<&objects::Counter::add>(1).get() == 3);
}

}  // namespace rref_order_test
}  // namespace batchrpc
