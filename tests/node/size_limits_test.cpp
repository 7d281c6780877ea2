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

TEST_CASE("what a peer refuses as too large costs the connection, not the process") {
  Pair pair;
  NodeOptions options = pair.world.joining("small");
  options.limits.max_frame_bytes = 64 * 1024;
  options.limits.max_payload_bytes = 64 * 1024;
  const Node small(options);
  small.expose("length", [](const std::string& text) { return text.size(); });
  small.expose("size", [](const Bytes& bytes) { return bytes.size(); });
  small.expose<&failures::area>();
  for (int round = 0; round < 3; ++round) {
    const auto text = outcome(
        pair.a.call<std::size_t(std::string)>("small", "length", std::string(100'000, 'x')));
    REQUIRE_FALSE(text);
    CHECK(may_have_run(text.error()));
    CHECK(pair.a.call<&failures::area>("small", 2, 3).get() == 6);
    const auto bytes =
        outcome(pair.a.call<std::size_t(Bytes)>("small", "size", Bytes::allocate(100'000)));
    REQUIRE_FALSE(bytes);
    CHECK(pair.a.call<&failures::area>("small", 2, 3).get() == 6);
  }
  CHECK(pair.world.log.contain("NodeOptions::limits.max_frame_bytes"));
  CHECK(pair.world.log.contain("NodeOptions::limits.max_payload_bytes"));
}

}  // namespace size_limits_test
}  // namespace batchrpc
