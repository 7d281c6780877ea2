// Links of the network inside the process that are slow, break, or pass one way only.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/testing.hpp"
#include "fabrics.hpp"
#include "transport/link_draws.hpp"

namespace batchrpc::test {
namespace inproc_links_test {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Two hosts on one virtual loop.
struct World {
  explicit World(const LinkOptions& link = {}, std::uint64_t seed = 1)
      : network(InprocNetwork::make(seed)) {
    network->set_link(link);
  }

  std::shared_ptr<VirtualLoop> loop = std::make_shared<VirtualLoop>();
  std::shared_ptr<InprocNetwork> network;
  Fabric fabric = inproc_fabric(network, loop, loop);
  Ends ends{fabric};
};

std::span<const std::byte> text(const char* bytes) { return as_bytes(bytes); }

IoResult write(Stream& stream, std::span<const std::byte> bytes) {
  return stream.try_write({&bytes, 1});
}

TEST_CASE("jitter is uniform, exponential or log-normal") {
  std::mt19937_64 random(1);
  const auto shape = [&](JitterShape jitter_shape) {
    const LinkOptions options{.jitter = milliseconds(10), .jitter_shape = jitter_shape};
    std::vector<double> drawn;
    for (int i = 0; i < 20'000; ++i)
      drawn.push_back(
          std::chrono::duration<double, std::milli>(detail::draw_jitter(options, random)).count());
    std::sort(drawn.begin(), drawn.end());
    return drawn;
  };
  const auto mean = [](const std::vector<double>& all) {
    double sum = 0;
    for (const double each : all)
      sum += each;
    return sum / static_cast<double>(all.size());
  };
  const auto uniform = shape(JitterShape::uniform);
  CHECK(uniform.back() <= 10);
  CHECK(mean(uniform) == Approx(5).epsilon(0.05));
  const auto exponential = shape(JitterShape::exponential);
  CHECK(exponential.front() >= 0);
  CHECK(mean(exponential) == Approx(10).epsilon(0.05));
  CHECK(exponential[10'000] == Approx(10 * std::log(2)).epsilon(0.05));
  const auto log_normal = shape(JitterShape::log_normal);
  CHECK(log_normal[10'000] == Approx(10).epsilon(0.05));
  CHECK(log_normal[19'800] == Approx(10 * std::exp(2.326)).epsilon(0.15));  // one in a hundred
}

TEST_CASE("a link's bandwidth delays what is written by what was written before") {
  World world({.latency = milliseconds(5), .bandwidth = 100'000});
  Accepting accepting(world.fabric);
  Pair pair = accepting.connect();
  const TimePoint start = world.loop->now();
  world.ends.write_all(*pair.client, pattern(10'000, 1), 1000);
  world.ends.read(*pair.server, 10'000);
  CHECK(world.loop->now() == start + milliseconds(105));
  // The other way there was nothing before.
  const TimePoint again = world.loop->now();
  world.ends.write_all(*pair.server, pattern(1000, 1));
  world.ends.read(*pair.client, 1000);
  CHECK(world.loop->now() == again + milliseconds(15));
}

TEST_CASE("a slow reader drains at its rate, and its writer finds the connection full") {
  World world({.read_rate = 100'000, .capacity = 10'000});
  Accepting accepting(world.fabric);
  Pair pair = accepting.connect();
  const auto sent = pattern(50'000, 1);
  CHECK(write(*pair.client, sent).bytes == 10'000);
  CHECK(write(*pair.client, sent).would_block());
  const TimePoint start = world.loop->now();
  CHECK(world.ends.read(*pair.server, 10'000).size() == 10'000);
  CHECK(world.loop->now() >= start + milliseconds(90));
  CHECK(world.loop->now() <= start + milliseconds(110));
  CHECK(world.ends.transfer(*pair.client, *pair.server, sent) == sent);
  CHECK(world.loop->now() >= start + milliseconds(580));
  CHECK(world.loop->now() <= start + milliseconds(620));
  pair.client.reset();
  world.ends.read(*pair.server, 1);
  CHECK(world.ends.last.end);
}

TEST_CASE("connections break at random bytes, on average where they should") {
  World world({.break_every = 10'000});
  Accepting accepting(world.fabric);
  std::uint64_t written = 0;
  std::size_t inside = 0;  // of a write
  std::size_t all = 0;
  std::size_t none = 0;
  constexpr std::size_t kConnections = 300;
  for (std::size_t i = 0; i < kConnections; ++i) {
    Pair pair = accepting.connect();
    const auto out = pattern(100, 1);
    std::uint64_t taken = 0;
    IoResult result;
    while (!result.error) {
      result = write(*pair.client, out);
      taken += result.bytes;
      if (result.bytes > 0 && result.bytes < out.size()) ++inside;
      if (taken % 1000 == 0 && !result.error) world.ends.read(*pair.server, 1000);
    }
    CHECK(result.error == std::errc::connection_reset);
    const auto rest = world.ends.read(*pair.server, 1000);
    CHECK(world.ends.last.error == std::errc::connection_reset);
    CHECK(rest.size() <= taken % 1000);
    all += rest.size() == taken % 1000 ? 1 : 0;
    none += rest.empty() ? 1 : 0;
    written += taken;
  }
  CHECK(static_cast<double>(written) / kConnections == Approx(10'000).epsilon(0.15));
  CHECK(inside > kConnections / 2);
  CHECK(all > kConnections / 6);
  CHECK(none > kConnections / 6);
  CHECK(all + none < kConnections);
}

TEST_CASE("what is lost when a connection breaks comes last") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    World world({.latency = milliseconds(10), .jitter = milliseconds(9), .break_every = 400}, seed);
    Accepting accepting(world.fabric);
    Pair pair = accepting.connect();
    const auto sent = pattern(5000, 1);
    std::size_t at = 0;
    IoResult result;
    while (!result.error && at < sent.size()) {
      result = write(*pair.client, std::span(sent).subspan(at, 50));
      at += result.bytes;
      world.loop->run_for(milliseconds(1));
    }
    REQUIRE(result.error == std::errc::connection_reset);
    const auto got = world.ends.read(*pair.server, sent.size());
    CHECK(got.size() <= at);
    CHECK(std::equal(got.begin(), got.end(), sent.begin()));
    CHECK(world.ends.last.error == std::errc::connection_reset);
  }
}

TEST_CASE("what is sent over two connections may overtake") {
  World world({.latency = milliseconds(1), .jitter = milliseconds(10)});
  Accepting accepting(world.fabric);
  const Pair one = accepting.connect();
  const Pair two = accepting.connect();
  int overtaken = 0;
  for (int i = 0; i < 100; ++i) {
    TimePoint first;
    TimePoint second;
    one.server->wait_readable([&] { first = world.loop->now(); });
    two.server->wait_readable([&] { second = world.loop->now(); });
    CHECK(write(*one.client, text("x")).bytes == 1);
    CHECK(write(*two.client, text("x")).bytes == 1);
    world.loop->run_for(milliseconds(20));
    world.ends.read(*one.server, 1);
    world.ends.read(*two.server, 1);
    overtaken += second < first ? 1 : 0;
  }
  CHECK(overtaken > 20);
  CHECK(overtaken < 80);
}

TEST_CASE("a one-way partition lets the other direction through") {
  World world;
  Accepting accepting(world.fabric);
  Pair pair = accepting.connect();
  world.network->partition_one_way("client", "server");
  world.ends.write_all(*pair.client, text("lost"));
  world.ends.write_all(*pair.server, text("heard"));
  CHECK(world.ends.read(*pair.client, 5).size() == 5);
  bool readable = false;
  pair.server->wait_readable([&] { readable = true; });
  std::error_code error;
  world.fabric.client->connect(
      accepting.address(), world.loop->now() + seconds(5),
      [&](std::unique_ptr<Stream>, std::error_code result) { error = result; });
  world.loop->run_for(seconds(60));
  CHECK_FALSE(readable);
  CHECK(error == std::errc::timed_out);
  world.network->heal("server", "client");
  world.loop->run_for(seconds(1));
  CHECK(readable);
  CHECK(world.ends.read(*pair.server, 4).size() == 4);
}

TEST_CASE("a cut resets both sides at once and loses what is under way") {
  World world({.latency = milliseconds(10)});
  Accepting accepting(world.fabric);
  Pair pair = accepting.connect();
  world.ends.write_all(*pair.client, text("there"));
  world.loop->run_for(milliseconds(20));
  world.ends.write_all(*pair.client, text("under way"));
  bool told = false;
  pair.client->wait_readable([&] { told = true; });
  world.network->cut("client", "elsewhere");
  world.loop->run_for(milliseconds(1));
  CHECK_FALSE(told);
  world.network->cut("server", "client");
  world.loop->run_for(Duration::zero());
  CHECK(told);
  CHECK(world.ends.read(*pair.server, 100).size() == 5);
  CHECK(world.ends.last.error == std::errc::connection_reset);
  CHECK(write(*pair.client, text("x")).error == std::errc::connection_reset);
  CHECK(accepting.connect().server != nullptr);
}

TEST_CASE("of a host that was powered off nobody hears, until it is started again") {
  World world;
  auto accepting = std::make_unique<Accepting>(world.fabric);
  const Address address = accepting->address();
  Pair pair = accepting->connect();
  world.network->power_off("server");
  bool told = false;
  pair.client->wait_readable([&] { told = true; });
  pair.server.reset();
  accepting.reset();
  std::error_code error;
  world.fabric.client->connect(
      address, world.loop->now() + seconds(5),
      [&](std::unique_ptr<Stream>, std::error_code result) { error = result; });
  std::unique_ptr<Stream> late;
  world.fabric.client->connect(
      address, world.loop->now() + seconds(500),
      [&](std::unique_ptr<Stream> stream, std::error_code) { late = std::move(stream); });
  world.loop->run_for(seconds(60));
  CHECK_FALSE(told);
  CHECK(error == std::errc::timed_out);

  const Accepting dead(world.fabric, address);  // by the transport of the life before
  world.loop->run_for(seconds(60));
  CHECK(late == nullptr);
  Fabric restarted = world.fabric;
  restarted.server = world.network->transport(world.loop, "server");
  const Accepting again(restarted, address);
  world.loop->run_for(seconds(1));
  CHECK(late != nullptr);
}

TEST_CASE("a network tells what happens in it, with a hash of what is read") {
  const auto run = [](const char* message) {
    World world;
    std::vector<std::string> events;
    world.network->set_trace([&](std::string_view event) { events.emplace_back(event); });
    const Address address = Address::parse("inproc://here");
    Accepting accepting(world.fabric, address);
    Pair pair = accepting.connect();
    world.ends.write_all(*pair.client, text(message));
    world.ends.read(*pair.server, 5);
    world.network->partition("client", "server");
    world.network->heal("client", "server");
    world.network->cut("client", "server");
    world.network->kill("server");
    CHECK(connect(world.fabric, address).second == std::errc::connection_refused);
    world.network->set_trace(nullptr);
    return events;
  };
  const auto events = run("hello");
  const std::vector<std::string> expected{"server listens at here",
                                          "#1 client>server: connects to here",
                                          "#1 client>server: server reads 5 bytes, "
                                          "a430d84680aabd0b",
                                          "partition between client and server",
                                          "heal between client and server",
                                          "cut between client and server",
                                          "#1 client>server: is cut",
                                          "kill server",
                                          "client is refused at here"};
  CHECK(events == expected);
  CHECK(run("hello") == events);
  CHECK(run("hallo") != events);
}

}  // namespace inproc_links_test
}  // namespace batchrpc::test
