#include <catch2/catch.hpp>

#include "node/calling_pair.hpp"

namespace batchrpc {
namespace size_limits_test {

using test::may_have_run;
using test::outcome;
using Pair = test::CallingPair;

TEST_CASE("a call that is too large is refused where it is made, and the next call works") {
  Pair pair;
  NodeOptions options = pair.world.joining("small");
  options.limits.max_frame_bytes = 64 * 1024;
  options.limits.max_payload_bytes = 64 * 1024;
  const Node small(options);
  pair.b.expose("length", [](const std::string& text) { return text.size(); });
  pair.b.expose("size", [](const Bytes& bytes) { return bytes.size(); });
  using Length = std::size_t(std::string);
  using Size = std::size_t(Bytes);

  const auto text = outcome(small.call<Length>("b", "length", std::string(100'000, 'x')));
  REQUIRE_FALSE(text);
  CHECK(text.code() == ErrorCode::invalid_argument);
  CHECK_FALSE(may_have_run(text.error()));
  CHECK_THAT(text.message(), Catch::Contains("length' to b is too large") &&
                                 Catch::Contains("65536") &&
                                 Catch::Contains("NodeOptions::limits.max_frame_bytes"));
  const auto bytes = outcome(small.call<Size>("b", "size", Bytes::allocate(65537)));
  CHECK(bytes.code() == ErrorCode::invalid_argument);
  CHECK_THAT(bytes.message(), Catch::Contains("max_payload_bytes"));
  CHECK_THROWS_AS((small.peer("b").notify<Size>("size", Bytes::allocate(65537))), InvalidArgument);

  CHECK(small.call<Size>("b", "size", Bytes::allocate(65536)).get() == 65536);
  CHECK(small.call<Length>("b", "length", std::string(60'000, 'x')).get() == 60'000);
  CHECK(small.call<&failures::area>("b", 2, 3).get() == 6);
}

TEST_CASE("a result that is too large fails the call, which has run, and the next call works") {
  Pair pair;
  NodeOptions options = pair.world.joining("small");
  options.limits.max_frame_bytes = 64 * 1024;
  const Node small(options);
  small.expose("text", [](std::size_t size) { return std::string(size, 'x'); });
  const auto result =
      outcome(pair.a.call<std::string(std::size_t)>("small", "text", std::size_t{100'000}));
  REQUIRE_FALSE(result);
  CHECK(result.code() == ErrorCode::invalid_argument);
  CHECK_THAT(result.message(), Catch::Contains("the result for a is too large"));
  CHECK(may_have_run(result.error()));
  CHECK(pair.a.call<std::string(std::size_t)>("small", "text", std::size_t{10}).get().size() == 10);
}

TEST_CASE("the names of functions over one connection are limited, and calls go on behind that") {
  Pair pair;
  const std::string long_name(4096, 'x');
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string name = std::to_string(i) + long_name.substr(10);
    const auto result = outcome(pair.a.call<int()>("b", name));
    CHECK_FALSE(test::may_have_run(result.error()));
    if (result.code() == ErrorCode::invalid_argument) {
      CHECK_THAT(result.message(), Catch::Contains("65536 functions"));
      ++refused;
    }
  }
  CHECK(refused > 0);
  CHECK(refused < 2000);
  CHECK(pair.b.peers().front().state == PeerState::connected);
  pair.next_call_works();
}

/// An object of a node with small limits.
struct Log {
  std::vector<std::size_t> sizes;
  std::size_t add(const std::string& text) {
    sizes.push_back(text.size());
    return sizes.size();
  }
};

/// A node with small limits, its peers with the usual ones, and a call of `a` that goes on for
/// long.
struct SmallReceiver {
  SmallReceiver() {
    small.expose("length", [](const std::string& text) { return text.size(); });
    small.expose("size", [](const Bytes& bytes) { return bytes.size(); });
    small.expose("slow", [this] { return slow.get_future(); });
    pair.a.expose("text", [](std::size_t size) { return std::string(size, 'x'); });
    pair.a.expose("bytes", [](std::size_t size) { return Bytes::allocate(size); });
    under_way = pair.a.call<int()>("small", "slow");
    pair.world.loop->run_for(std::chrono::seconds(1));
  }
  ~SmallReceiver() {
    slow.set_value(7);
    pair.next_call_works();  // this thread waits with its node again
    CHECK(under_way.get() == 7);
    for (const PeerInfo& peer : small.peers())
      CHECK(peer.reconnects == 0);
  }

  static NodeOptions options_of(const test::VirtualWorld& world) {
    NodeOptions options = world.joining("small");
    options.limits.max_frame_bytes = 64 * 1024;
    options.limits.max_payload_bytes = 64 * 1024;
    return options;
  }

  Pair pair;
  Promise<int> slow;
  Node small{options_of(pair.world)};
  Future<int> under_way;
};

TEST_CASE("a call that its receiver does not take fails alone, and says whose limit it is") {
  SmallReceiver f;
  using Length = std::size_t(std::string);
  using Size = std::size_t(Bytes);
  for (int round = 0; round < 3; ++round) {
    const auto text = outcome(f.pair.a.call<Length>("small", "length", std::string(100'000, 'x')));
    CHECK(text.code() == ErrorCode::invalid_argument);
    CHECK_FALSE(may_have_run(text.error()));
    CHECK_THAT(text.message(),
               Catch::Contains("'length' was not run: its 100") &&
                   Catch::Contains("NodeOptions::limits.max_frame_bytes of small, 65536"));
    const auto bytes = outcome(f.pair.a.call<Size>("small", "size", Bytes::allocate(3'000'000)));
    CHECK(bytes.code() == ErrorCode::invalid_argument);
    CHECK_FALSE(may_have_run(bytes.error()));
    CHECK_THAT(bytes.message(),
               Catch::Contains("its 3000000 bytes of payloads") &&
                   Catch::Contains("NodeOptions::limits.max_payload_bytes of small, 65536"));
    CHECK(f.pair.a.call<Size>("small", "size", Bytes::allocate(65'536)).get() == 65'536);
  }
}

TEST_CASE("a result that its caller does not take fails that call alone, which has run") {
  SmallReceiver f;
  for (int round = 0; round < 3; ++round) {
    const auto text =
        outcome(f.small.call<std::string(std::size_t)>("a", "text", std::size_t{100'000}));
    CHECK(text.code() == ErrorCode::invalid_argument);
    CHECK(may_have_run(text.error()));
    CHECK_THAT(text.message(),
               Catch::Contains("the reply of 'text' on a was dropped") &&
                   Catch::Contains("NodeOptions::limits.max_frame_bytes of small, 65536"));
    const auto bytes =
        outcome(f.small.call<Bytes(std::size_t)>("a", "bytes", std::size_t{3'000'000}));
    CHECK(bytes.code() == ErrorCode::invalid_argument);
    CHECK(may_have_run(bytes.error()));
    CHECK_THAT(bytes.message(), Catch::Contains("max_payload_bytes of small"));
    CHECK(f.small.call<Bytes(std::size_t)>("a", "bytes", std::size_t{65'536}).get().size() ==
          65'536);
  }
}

TEST_CASE("a notification that its receiver does not take is dropped with a warning") {
  SmallReceiver f;
  f.pair.a.peer("small").notify<std::size_t(Bytes)>("size", Bytes::allocate(3'000'000));
  f.pair.a.peer("small").notify<std::size_t(std::string)>("length", std::string(100'000, 'x'));
  CHECK(f.pair.a.call<std::size_t(Bytes)>("small", "size", Bytes::allocate(30)).get() == 30);
  CHECK(f.pair.world.log.contain("a notification from a was dropped: 'size' was not run"));
  CHECK(f.pair.world.log.contain("a notification from a was dropped: 'length' was not run"));
}

TEST_CASE("the credit of a large call that is refused comes back before the next ping") {
  SmallReceiver f;
  NodeOptions options = f.pair.world.joining("tight");
  options.limits.max_outstanding_bytes = 4'000'000;
  const Node tight(options);
  for (int round = 0; round < 3; ++round) {
    const auto result =
        outcome(tight.call<std::size_t(Bytes)>("small", "size", Bytes::allocate(3'900'000)));
    CHECK(result.code() == ErrorCode::invalid_argument);
    f.pair.world.loop->run_for(std::chrono::milliseconds(10));
  }
}

TEST_CASE("a call with too large a frame and payloads is dropped with these") {
  SmallReceiver f;
  f.small.expose("both", [](const std::string& text, const Bytes& bytes) {
    return text.size() + bytes.size();
  });
  using Both = std::size_t(std::string, Bytes);
  for (const std::size_t payload : {std::size_t{10}, std::size_t{40'000}, std::size_t{3'000'000}}) {
    const auto both = outcome(
        f.pair.a.call<Both>("small", "both", std::string(100'000, 'x'), Bytes::allocate(payload)));
    CHECK(both.code() == ErrorCode::invalid_argument);
    CHECK_FALSE(may_have_run(both.error()));
    f.pair.a.peer("small").notify<Both>("both", std::string(100'000, 'x'),
                                        Bytes::allocate(payload));
    CHECK(f.pair.a.call<Both>("small", "both", std::string("abc"), Bytes::allocate(4)).get() == 7);
  }
}

TEST_CASE("calls of an object go on behind one that is too large") {
  SmallReceiver f;
  f.small.expose<&Log::add>("add");
  const RRef<Log> log = f.small.own(std::make_shared<Log>());
  f.pair.a.expose("use", [](const RRef<Log>& handle) {
    auto first = handle.call<std::size_t(std::string)>("add", std::string("a"));
    auto large = handle.call<std::size_t(std::string)>("add", std::string(100'000, 'x'));
    auto last = handle.call<std::size_t(std::string)>("add", std::string("b"));
    CHECK(outcome(std::move(large)).code() == ErrorCode::invalid_argument);
    return first.get() * 10 + last.get();
  });
  CHECK(f.small.call<std::size_t(RRef<Log>)>("a", "use", log).get() == 12);
}

TEST_CASE("a call that is too large for its receiver is not retried") {
  SmallReceiver f;
  const TimePoint before = f.pair.world.loop->now();
  const auto result = outcome(f.pair.a.peer("small")
                                  .with({.retry = {.attempts = 5, .idempotent = true}})
                                  .call<std::size_t(Bytes)>("size", Bytes::allocate(3'000'000)));
  CHECK(result.code() == ErrorCode::invalid_argument);
  CHECK(f.pair.world.loop->now() - before < std::chrono::milliseconds(100));
}

}  // namespace size_limits_test
}  // namespace batchrpc
