#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/calling_pair.hpp"
#include "node/metrics_of.hpp"
#include "node/virtual_world.hpp"

namespace metrics {

class Counter {
 public:
  int add(int more) { return sum_ += more; }

 private:
  int sum_ = 0;
};

}  // namespace metrics

namespace batchrpc {
namespace metrics_parts_test {

using namespace std::chrono_literals;
using test::answered_of;
using test::CallingPair;
using test::made_of;
using test::outcome;
using test::peer_of;
using test::VirtualWorld;

TEST_CASE("batchers are listed under the names that they are exposed as, and their sums stay") {
  CallingPair pair;
  {
    const Batcher<int(int)> twice({.max_size = 4}, [](std::vector<int> xs) {
      for (int& x : xs)
        x *= 2;
      return xs;
    });
    pair.b.expose("twice", twice);
    std::vector<Future<int>> rows;
    for (int i = 0; i < 8; ++i)
      rows.push_back(pair.a.call<int(int)>("b", "twice", i));
    pair.world.run_for(1s);
    const BatchStatistics statistics = twice.statistics();
    const NodeMetrics b = pair.b.metrics();
    REQUIRE(b.batchers.size() == 1);
    const BatcherMetrics& batcher = b.batchers.front();
    CHECK(batcher.name == "twice");
    CHECK(batcher.batchers == 1);
    CHECK(batcher.rows == 8);
    CHECK(batcher.answered == 8);
    CHECK(batcher.batches == statistics.batches);
    CHECK(batcher.sizes.sum() == 8);
    CHECK(batcher.latency.count() == 8);
    std::uint64_t started = 0;
    for (const ReasonCount& reason : batcher.reasons)
      started += reason.batches;
    CHECK(started == batcher.batches);
    CHECK(answered_of(b, "twice")->ok == 8);
  }
  pair.b.unexpose("twice");
  pair.world.run_for(1s);
  const NodeMetrics b = pair.b.metrics();
  REQUIRE(b.batchers.size() == 1);
  CHECK(b.batchers.front().batchers == 0);
  CHECK(b.batchers.front().rows == 8);
  CHECK(b.batchers.front().queued == 0);
}

TEST_CASE("objects behind remote references are counted by type and by owner") {
  CallingPair pair;
  pair.b.expose_class<metrics::Counter()>();
  pair.b.expose<&metrics::Counter::add>();
  {
    const auto first = pair.a.create<metrics::Counter>("b");
    const auto second = pair.a.create<metrics::Counter>("b");
    CHECK(first.call<&metrics::Counter::add>(2).get() == 2);
    pair.world.run_for(1s);
    const NodeMetrics b = pair.b.metrics();
    REQUIRE(b.rrefs.owned.size() == 1);
    CHECK(b.rrefs.owned[0].name == "metrics::Counter");
    CHECK(b.rrefs.owned[0].objects == 2);
    CHECK(b.rrefs.owned[0].holders == 1);
    const NodeMetrics a = pair.a.metrics();
    REQUIRE(a.rrefs.used.size() == 1);
    CHECK(a.rrefs.used[0].name == "b");
    CHECK(a.rrefs.used[0].objects == 2);
    CHECK(made_of(a, "metrics::Counter::add")->ok == 1);
    CHECK(answered_of(b, "metrics::Counter::add")->ok == 1);
  }
  pair.world.run_for(1s);
  CHECK(pair.b.metrics().rrefs.owned.empty());
}

TEST_CASE("a remote object that cannot be made is one error: the library's own messages are none") {
  const CallingPair pair;
  CHECK(outcome(pair.a.create<metrics::Counter>("nobody").ready()).code() == ErrorCode::not_found);
  const NodeMetrics metrics = pair.a.metrics();
  REQUIRE(metrics.last_errors.size() == 1);
  CHECK(metrics.last_errors[0].function == "metrics::Counter");
  for (const FunctionMetrics& function : metrics.functions)
    CHECK_FALSE(function.name.starts_with("batchrpc."));
}

TEST_CASE("what a node calls on itself is counted as of a peer with its own name") {
  const VirtualWorld world;
  const Node node = world.root("self");
  node.expose<&failures::area>();
  CHECK(node.call<&failures::area>("self", 2, 3).get() == 6);
  const NodeMetrics metrics = node.metrics();
  CHECK(peer_of(metrics, "self").state == "self");
  CHECK(peer_of(metrics, "self").made.ok == 1);
  CHECK(answered_of(metrics, "failures::area")->ok == 1);
}

TEST_CASE("a node tells its metrics after its end, too, as JSON and for Prometheus") {
  CallingPair pair;
  pair.next_call_works();
  pair.world.run_for(2s);
  CHECK(pair.a.metrics().uptime >= 2s);
  pair.a.shutdown(1s);
  const NodeMetrics metrics = pair.a.metrics();
  CHECK(made_of(metrics, "failures::area")->ok == 1);
  CHECK(to_json(metrics).find("\"failures::area\"") != std::string::npos);
  CHECK(to_prometheus(metrics).find(
            "batchrpc_calls_total{peer=\"b\",function=\"failures::area\"} 1\n") !=
        std::string::npos);
}

}  // namespace metrics_parts_test
}  // namespace batchrpc
