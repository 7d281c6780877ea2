// What the network inside the process does beyond other transports: faults, in virtual time.
#include "batchrpc/transport/inproc.hpp"

#include <catch2/catch.hpp>

#include "batchrpc/base/bytes.hpp"
#include "fabrics.hpp"

namespace batchrpc::test {
namespace inproc_test {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Two hosts on one virtual loop.
struct World {
  explicit World(std::uint64_t seed = 1) : network(InprocNetwork::make(seed)) {}
  explicit World(const LinkOptions& link, std::uint64_t seed = 1) : World(seed) {
    network->set_link(link);
  }

  std::shared_ptr<VirtualLoop> loop = std::make_shared<VirtualLoop>();
  std::shared_ptr<InprocNetwork> network;
  Fabric fabric = inproc_fabric(network, loop, loop);
  Ends ends{fabric};
};

std::span<const std::byte> text(const char* bytes) { return as_bytes(bytes); }

TEST_CASE("a link's latency delays what is written and keeps its order") {
  World world({.latency = milliseconds(10), .jitter = milliseconds(7)});
  Accepting accepting(world.fabric);
  const TimePoint start = world.loop->now();
  Pair pair = accepting.connect();
  CHECK(world.loop->now() == start + milliseconds(20));  // there and back

  const TimePoint sent_at = world.loop->now();
  const auto sent = pattern(1000, 1);
  world.ends.write_all(*pair.client, sent, 10);
  CHECK(world.ends.read(*pair.server, 1000) == sent);
  CHECK(world.loop->now() >= sent_at + milliseconds(10));
  CHECK(world.loop->now() <= sent_at + milliseconds(17));
}

TEST_CASE("the same seed gives the same run") {
  const auto run = [](std::uint64_t seed) {
    World world({.latency = milliseconds(1), .jitter = milliseconds(50)}, seed);
    Accepting accepting(world.fabric);
    Pair pair = accepting.connect();
    std::vector<Duration::rep> times;
    for (int i = 0; i < 50; ++i) {
      world.ends.write_all(*pair.client, pattern(5, 1));
      world.ends.read(*pair.server, 5);
      times.push_back(world.loop->now().time_since_epoch().count());
    }
    return times;
  };
  CHECK(run(1) == run(1));
  CHECK(run(1) != run(2));
}

TEST_CASE("one byte at a time, both ways") {
  World world({.max_chunk = 1});
  Accepting accepting(world.fabric);
  Pair pair = accepting.connect();
  const auto sent = text("hello");
  CHECK(pair.client->try_write({&sent, 1}).bytes == 1);
  world.ends.write_all(*pair.client, sent.subspan(1));
  std::array<std::byte, 5> room{};
  const std::span<std::byte> in(room);
  CHECK(pair.server->try_read({&in, 1}).bytes == 1);
  CHECK(world.ends.read(*pair.server, 4).size() == 4);
}

TEST_CASE("a connection can be made to break at any byte") {
  for (std::uint64_t limit = 0; limit < 12; ++limit) {
    World world({.break_after = limit + 1});
    Accepting accepting(world.fabric);
    Pair pair = accepting.connect();
    std::size_t sent = 0;
    const auto out = text("0123456789abcdef");
    IoResult result;
    while (!result.error) {
      const auto rest = out.subspan(sent);
      result = pair.client->try_write({&rest, 1});
      sent += result.bytes;
    }
    CHECK(sent == limit + 1);
    CHECK(result.error == std::errc::connection_reset);
    CHECK(world.ends.read(*pair.server, 16).size() == limit + 1);
    CHECK(world.ends.last.error == std::errc::connection_reset);
  }
}

TEST_CASE("what is written into a partition arrives when it heals") {
  World world;
  Accepting accepting(world.fabric);
  Pair pair = accepting.connect();
  world.ends.write_all(*pair.client, text("before"));
  world.network->partition("client", "server");
  world.ends.write_all(*pair.client, text("during"));
  bool readable = false;
  CHECK(world.ends.read(*pair.server, 6).size() == 6);
  pair.server->wait_readable([&] { readable = true; });
  world.loop->run_for(seconds(60));
  CHECK_FALSE(readable);
  world.network->heal("client", "server");
  world.loop->run_for(seconds(1));
  CHECK(readable);
  CHECK(world.ends.read(*pair.server, 6).size() == 6);
}

TEST_CASE("an end that happens behind a partition is seen when it heals") {
  World world;
  Accepting accepting(world.fabric);
  Pair pair = accepting.connect();
  world.network->isolate("client");
  pair.client.reset();
  bool ended = false;
  pair.server->wait_readable([&] { ended = true; });
  world.loop->run_for(seconds(60));
  CHECK_FALSE(ended);
  const auto out = text("x");
  CHECK(pair.server->try_write({&out, 1}).bytes == 1);
  world.network->rejoin("client");
  world.loop->run_for(seconds(1));
  CHECK(ended);
}

TEST_CASE("a connect into a partition times out, or succeeds when it heals") {
  World world;
  Accepting accepting(world.fabric);
  const Address address = accepting.address();
  world.network->partition("server", "client");
  const TimePoint start = world.loop->now();
  std::error_code error;
  world.fabric.client->connect(
      address, start + seconds(5),
      [&](std::unique_ptr<Stream>, std::error_code result) { error = result; });
  std::unique_ptr<Stream> late;
  world.fabric.client->connect(
      address, start + seconds(50),
      [&](std::unique_ptr<Stream> stream, std::error_code) { late = std::move(stream); });
  world.loop->run_for(seconds(4));
  CHECK(!error);
  world.loop->run_for(seconds(2));
  CHECK(error == std::errc::timed_out);
  CHECK(late == nullptr);
  world.network->heal("client", "server");
  world.loop->run_for(seconds(1));
  CHECK(late != nullptr);
}

TEST_CASE("a connect that takes longer than its deadline times out") {
  World world({.latency = seconds(3)});
  Accepting accepting(world.fabric);
  std::error_code error;
  world.fabric.client->connect(
      accepting.address(), world.loop->now() + seconds(5),
      [&](std::unique_ptr<Stream>, std::error_code result) { error = result; });
  world.loop->run_for(seconds(20));
  CHECK(error == std::errc::timed_out);
  // The side that had accepted sees the end.
  world.ends.read(*accepting.accept(), 1);
  CHECK(world.ends.last.end);
}

TEST_CASE("a killed host's connections are reset and its listeners refuse") {
  World world;
  Accepting accepting(world.fabric);
  Pair pair = accepting.connect();
  world.ends.write_all(*pair.server, text("last words"));
  world.network->kill("server");
  CHECK(world.ends.read(*pair.client, 100).size() == 10);
  CHECK(world.ends.last.error == std::errc::connection_reset);
  CHECK(connect(world.fabric, accepting.address()).second == std::errc::connection_refused);
  const Accepting again(world.fabric, accepting.address());  // as a restarted process would
  CHECK(connect(world.fabric, accepting.address()).first != nullptr);
}

TEST_CASE("links between two hosts have options of their own") {
  World world;
  world.network->set_link("client", "far", {.latency = seconds(1)});
  const auto far = world.network->transport(world.loop, "far");
  Fabric fabric = world.fabric;
  fabric.server = far;
  Accepting accepting(fabric);
  const TimePoint start = world.loop->now();
  Pair pair = accepting.connect();
  CHECK(world.loop->now() == start + seconds(2));
}

TEST_CASE("networks do not see each other") {
  World one;
  const World other;
  const Accepting accepting(one.fabric);
  CHECK(connect(other.fabric, accepting.address()).second == std::errc::connection_refused);
}

TEST_CASE("a network forgets connections that are over") {
  World world;
  Accepting accepting(world.fabric);
  for (int i = 0; i < 500; ++i)
    accepting.connect();
  world.loop->run_until_idle();
  CHECK(world.network->connections() == 0);
}

TEST_CASE("an idle connection holds no buffer, and a full one no more than its capacity") {
  World world({.capacity = 1000});
  Accepting accepting(world.fabric);
  Pair pair = accepting.connect();
  const auto sent = pattern(5000, 1);
  const std::span<const std::byte> out(sent);
  CHECK(pair.client->try_write({&out, 1}).bytes == 1000);
  CHECK(pair.client->try_write({&out, 1}).would_block());
  bool writable = false;
  pair.client->wait_writable([&] { writable = true; });
  world.ends.read(*pair.server, 400);
  world.loop->run_until_idle();
  CHECK_FALSE(writable);  // not for a few bytes
  world.ends.read(*pair.server, 200);
  world.loop->run_until_idle();
  CHECK(writable);
}

}  // namespace inproc_test
}  // namespace batchrpc::test
