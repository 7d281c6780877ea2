// More calls than a node can run: promise 7 of docs/reliability.md.
#include <catch2/catch.hpp>
#include <chrono>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/overload_server.hpp"

namespace batchrpc {
namespace overload_test {

using namespace std::chrono_literals;
using test::kCapacity;
using test::kProcessors;
using test::kTimeout;
using test::Server;
using test::Tally;

constexpr double kSeconds = 30;
double goodput(const Tally& tally) { return tally.answered / (kCapacity * kSeconds); }

TEST_CASE("promise 7: at five times the capacity for 30 s goodput stays at 90 % and more") {
  const auto order = GENERATE(QueueOrder::fifo, QueueOrder::earliest_deadline);
  const bool random_work = GENERATE(false, true);
  const bool mixed = GENERATE(false, true);
  Server server({.accepted = 1000, .running = kProcessors, .order = order});
  server.random_work = random_work;
  const Node client = server.world.join("client");
  Tally tally;
  server.load(
      client, tally, 5 * kCapacity, 30s,
      mixed ? std::vector<Duration>{400ms, 800ms, 1600ms} : std::vector<Duration>{kTimeout});
  server.world.run_for(33s);
  INFO((order == QueueOrder::fifo ? "fifo" : "earliest deadline")
       << (random_work ? ", random work" : "") << (mixed ? ", mixed time-outs" : "") << ": goodput "
       << goodput(tally) << " of the capacity, of " << tally.offered << " calls " << tally.answered
       << " answered, " << tally.refused << " refused, " << tally.timed_out << " timed out");
  CHECK(goodput(tally) >= 0.9);
  CHECK(tally.offered > 4.5 * kCapacity * kSeconds);
  CHECK(tally.answered + tally.refused + tally.timed_out == tally.offered);
  CHECK(tally.timed_out < tally.offered / 50);  // the others are told at once
  CHECK(tally.slowest_refusal <= 2ms);          // a round trip
  CHECK(server.processors.expired == 0);
  CHECK(server.processors.most == kProcessors);
}

TEST_CASE("promise 7: the same load without limits collapses, so the limits are what helps") {
  Server server({});
  const Node client = server.world.join("client");
  Tally tally;
  server.load(client, tally, 5 * kCapacity, 30s);
  server.world.run_for(33s);
  CHECK(goodput(tally) < 0.1);
  CHECK(server.processors.most > 1000);
  server.world.run_for(150s);  // what waits is done all the same
}

TEST_CASE("promise 7: below the capacity nothing is refused, and after a burst all is as before") {
  Server server({.accepted = 64, .running = kProcessors});
  const Node client = server.world.join("client");
  Tally before;
  server.load(client, before, 0.5 * kCapacity, 10s);
  server.world.run_for(11s);
  CHECK(before.answered == before.offered);
  Tally burst;
  server.load(client, burst, 20 * kCapacity, 2s);
  server.world.run_for(4s);
  CHECK(burst.refused > 0);
  Tally after;
  server.load(client, after, 0.5 * kCapacity, 10s);
  server.world.run_for(11s);
  CHECK(after.answered == after.offered);
}

TEST_CASE("promise 7: the limits of each peer keep the others served") {
  const auto order = GENERATE(QueueOrder::fifo, QueueOrder::earliest_deadline);
  Server server({.accepted = 200,
                 .accepted_per_peer = 100,
                 .running = kProcessors,
                 .running_per_peer = kProcessors - 1,
                 .order = order});
  const Node greedy = server.world.join("greedy");
  const Node modest = server.world.join("modest");
  Tally much;
  Tally little;
  server.load(greedy, much, 5 * kCapacity, 30s);
  server.load(modest, little, 0.15 * kCapacity, 30s);  // a processor does .25
  server.world.run_for(33s);
  CHECK(little.answered >= 0.95 * little.offered);
  CHECK((much.answered + little.answered) / (kCapacity * kSeconds) >= 0.8);
  CHECK(much.refused > 0);
}

}  // namespace overload_test
}  // namespace batchrpc
