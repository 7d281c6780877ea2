// What every transport must do when it connects, and when streams, listeners and transports end.
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <system_error>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "transport/every_fabric.hpp"

namespace batchrpc::test {
namespace conformance_test {

TEST_CASE("a connect is refused where nobody listens", "[threads]") {
  over_each([](Fabric& fabric) {
    Address address = fabric.address();
    {
      const Accepting accepting(fabric, address);
      address = accepting.address();  // of a port that was free a moment ago
    }
    const auto [stream, error] = connect(fabric, address);
    CHECK(stream == nullptr);
    CHECK(error == std::errc::connection_refused);
  });
}

TEST_CASE("an address that is taken says so and works on", "[threads]") {
  over_each([](Fabric& fabric) {
    Accepting accepting(fabric);
    try {
      const Accepting second(fabric, accepting.address());
      FAIL("the second listener was let in");
    } catch (const JoinFailed& error) {
      CHECK_THAT(error.what(), Catch::Contains(accepting.address().to_string()));
      CHECK_THAT(error.what(), Catch::Contains("taken"));
    }
    CHECK(accepting.connect().server != nullptr);
  });
}

TEST_CASE("an address is free again after its listener", "[threads]") {
  over_each([](Fabric& fabric) {
    Address address = fabric.address();
    for (int i = 0; i < 3; ++i) {
      Accepting accepting(fabric, address);
      address = accepting.address();
      CHECK(accepting.connect().server != nullptr);
    }
  });
}

TEST_CASE("a scheme that a transport does not know is refused", "[threads]") {
  over_each([](Fabric& fabric) {
    const bool inproc = fabric.address().scheme() == "inproc";
    const Address wrong = Address::parse(inproc ? "tcp://127.0.0.1:1" : "inproc://somebody");
    CHECK_THROWS_AS(fabric.server->listen(wrong, {}), InvalidArgument);
    CHECK_THROWS_AS(fabric.client->connect(wrong, fabric.soon(), {}), InvalidArgument);
  });
}

TEST_CASE("200 connections echo side by side", "[threads]") {
  over_each([](Fabric& fabric) {
    constexpr std::size_t kConnections = 200;
    Ends ends(fabric);
    Accepting accepting(fabric);
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < kConnections; ++i)
      pairs.push_back(accepting.connect());
    for (std::size_t i = 0; i < kConnections; ++i) {
      ends.write_all(*pairs[i].client, pattern(300 + i, i));
    }
    for (std::size_t i = kConnections; i-- > 0;) {
      ends.write_all(*pairs[i].server, ends.read(*pairs[i].server, 300 + i));
    }
    for (std::size_t i = 0; i < kConnections; ++i) {
      CHECK(ends.read(*pairs[i].client, 300 + i) == pattern(300 + i, i));
    }
  });
}

TEST_CASE("handlers run on their side's loop", "[threads]") {
  over_each([](Fabric& fabric) {
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    Countdown called(2);
    std::atomic<bool> on_client{false};
    std::atomic<bool> on_server{false};
    pair.client->wait_writable([&] {
      on_client = fabric.client_loop->is_driving();
      called.arrive();
    });
    pair.server->wait_writable([&] {
      on_server = fabric.server_loop->is_driving();
      called.arrive();
    });
    called.wait(fabric.waiting());
    CHECK(on_client);
    CHECK(on_server);
  });
}

TEST_CASE("a stream's end destroys its waiting handlers without calling them", "[threads]") {
  over_each([](Fabric& fabric) {
    Ends ends(fabric);
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    auto token = std::make_shared<int>();
    const std::weak_ptr<int> watch = token;
    std::atomic<bool> called{false};
    pair.client->wait_readable([&called, token = std::move(token)] { called = true; });
    pair.client.reset();
    CHECK(watch.expired());
    ends.read(*pair.server, 1);
    CHECK(ends.last.end);
    CHECK_FALSE(called);
  });
}

TEST_CASE("a stream may be destroyed in its own handler", "[threads]") {
  over_each([](Fabric& fabric) {
    Ends ends(fabric);
    Accepting accepting(fabric);
    for (int i = 0; i < 20; ++i) {
      Pair pair = accepting.connect();
      Countdown called(1);
      pair.client->wait_readable([&] {
        pair.client.reset();
        called.arrive();
      });
      ends.write_all(*pair.server, pattern(10, 1));
      called.wait(fabric.waiting());
    }
  });
}

TEST_CASE("a listener may be destroyed in its own handler", "[threads]") {
  over_each([](Fabric& fabric) {
    Countdown called(1);
    std::unique_ptr<Listener> listener;
    listener = fabric.server->listen(fabric.address(), [&](std::unique_ptr<Stream>) {
      listener.reset();
      called.arrive();
    });
    const auto [stream, error] = connect(fabric, listener->address());
    CHECK(!error);
    called.wait(fabric.waiting());
  });
}

TEST_CASE("a transport's end destroys the handlers of connects under way", "[threads]") {
  over_each([](Fabric& fabric) {
    const Accepting accepting(fabric);
    auto token = std::make_shared<int>();
    const std::weak_ptr<int> watch = token;
    fabric.server.reset();  // it may be the same
    fabric.client->connect(accepting.address(), fabric.soon(),
                           [token = std::move(token)](std::unique_ptr<Stream>, std::error_code) {});
    fabric.client.reset();
    Countdown passed(1);
    fabric.client_loop->post([&] { passed.arrive(); });
    passed.wait(fabric.waiting());
    CHECK(watch.expired());
  });
}

TEST_CASE("streams say whom they reach", "[threads]") {
  over_each([](Fabric& fabric) {
    Accepting accepting(fabric);
    const Pair pair = accepting.connect();
    CHECK(pair.client->description() == accepting.address().to_string());
    CHECK_FALSE(pair.server->description().empty());
    CHECK(pair.client->local_address().scheme() != "unix");
  });
}

}  // namespace conformance_test
}  // namespace batchrpc::test
