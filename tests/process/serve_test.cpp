#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <string>

#include "batchrpc/batchrpc.hpp"
#include "child.hpp"

// A server that is asked to end while it works (examples/serve.cpp).

namespace batchrpc {
namespace serve_test {

using test::Child;

struct Client {
  explicit Client(const std::string& seconds)
      : server({"serve", "tcp://127.0.0.1:0", seconds}),
        node({.name = "client", .rank = -1, .join = server.line("serving at ")}) {}

  /// A call that the server is working on.
  Future<int> begin_work(int milliseconds) const {
    auto working = node.call<int(int)>("server", "work", milliseconds);
    CHECK(node.call<int(int, int)>("server", "add", 1, 2).get() == 3);
    return working;
  }

  Child server;
  Node node;
};

TEST_CASE("promise 8: on SIGTERM a server finishes the calls under way, and ends with 0") {
  const int signal = GENERATE(SIGTERM, SIGINT);
  Client client("60");
  auto working = client.begin_work(300);
  client.server.signal(signal);
  CHECK(working.get() == 300);
  CHECK(client.server.wait() == 0);
  CHECK_THAT(client.server.output(), Catch::Contains("ending") && !Catch::Contains("not finished"));
}

TEST_CASE("promise 8: on SIGTERM a server names what it cannot finish in time, and ends with 0") {
  Client client("0.05");
  auto working = client.begin_work(3'600'000);
  client.server.signal(SIGTERM);
  CHECK(client.server.wait() == 0);
  CHECK_THAT(client.server.output(),
             Catch::Contains("not finished: 1 call from client, not yet answered: work"));
  CHECK_THROWS_AS(working.get(), PeerLost);
}

TEST_CASE("serve refuses what it cannot use with its usage") {
  Child server({"serve", "tcp://127.0.0.1:0", "soon"});
  CHECK(server.wait() == 2);
  CHECK_THAT(server.output(), Catch::StartsWith("usage: serve"));
}

}  // namespace serve_test
}  // namespace batchrpc
