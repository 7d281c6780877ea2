#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "batchrpc/profile.hpp"
#include "profile/profiled_pair.hpp"
#include "profile/sample_records.hpp"

namespace batchrpc {
namespace profiled_batches_test {

using namespace std::chrono_literals;
using nlohmann::json;
using Pair = test::ProfiledPair;

TEST_CASE("batches of two batchers of a node are two, each with its own rows") {
  Pair pair;
  const auto negated = [](const std::vector<int>& rows) {
    std::vector<int> results;
    for (const int row : rows)
      results.push_back(-row);
    return results;
  };
  const Batcher<int(int)> one({.max_wait = 0ms}, negated);
  const Batcher<int(int)> other({.max_wait = 0ms}, negated);
  pair.b->expose("one", one);
  pair.b->expose("other", other);
  const Profiler profiler(*pair.a);
  CHECK(pair.a->call<int(int)>("b", "one", 1).get() == -1);
  CHECK(pair.a->call<int(int)>("b", "other", 2).get() == -2);
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 2);
  CHECK(recording.calls[0].batch.number != recording.calls[1].batch.number);
  std::vector<json> batches;
  const json trace = json::parse(chrome_trace(recording));
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("cat") == "batch") batches.push_back(event);
  }
  REQUIRE(batches.size() == 2);
  CHECK(batches[0]["name"] == "batch of one");
  CHECK(batches[1]["name"] == "batch of other");
  for (const json& batch : batches)
    CHECK(batch["args"]["span_ids"].size() == 1);
}

// Two callers, whose calls are rows of one batch; its handler fails wherever it sees a 13.
struct Isolated {
  Isolated() : c(pair.world.join("c")), leaf(pair.world.join("leaf")) {
    leaf.expose("leaf", [&] { pair.world.loop->advance(2ms); });
    pair.b->expose("batched", make());
    pair.b->call<void()>("leaf", "leaf").get();  // connected
    c.call<int(int)>("b", "slow", 0).get();
  }

  Batcher<int(int)> make() {
    return {{.min_size = 2, .isolate = Isolate::bisect},
            [this](std::vector<int> rows) -> Future<std::vector<int>> {
              return pair.b->call<void()>("leaf", "leaf").then([rows] { return checked(rows); });
            }};
  }
  static std::vector<int> checked(const std::vector<int>& rows) {
    if (std::find(rows.begin(), rows.end(), 13) != rows.end()) throw std::domain_error("13");
    return rows;
  }

  Pair pair;
  Node c;
  Node leaf;
};

TEST_CASE("what a batch's handler does before its rows are tried apart is of all of them") {
  Isolated nodes;
  const Profiler of_a(*nodes.pair.a);
  const Profiler of_c(nodes.c);
  auto bad = nodes.pair.a->call<int(int)>("b", "batched", 13);
  auto good = nodes.c.call<int(int)>("b", "batched", 1);
  CHECK(std::move(good).get() == 1);
  CHECK_THROWS_AS(std::move(bad).get(), RemoteError);
  for (const Profiler* profiler : {&of_a, &of_c}) {
    const Recording recording = profiler->recording();
    REQUIRE(recording.calls.size() == 1);
    const CallRecord& call = recording.calls[0];
    CHECK(call.batch.rows == 2);
    REQUIRE(call.calls.size() == 2);  // of the run of both, and of its own
    CHECK(call.calls[0].shared);
    CHECK_FALSE(call.calls[1].shared);
    // Its own run is its own trace's, and below it.
    CHECK(call.calls[1].parent == call.span.span_number());
    CHECK(call.calls[1].span.trace_id == call.span.trace_id);
  }
}

TEST_CASE("what a batch's handler does for rows that nobody records is nobody's") {
  Isolated nodes;
  Profiler of_a(*nodes.pair.a);
  const Profiler of_b(*nodes.pair.b);
  const Profiler of_leaf(nodes.leaf, {.answered = true});
  auto bad = nodes.pair.a->call<int(int)>("b", "batched", 13);
  auto good = nodes.c.call<int(int)>("b", "batched", 1);  // not recorded, and runs apart
  CHECK(std::move(good).get() == 1);
  CHECK_THROWS_AS(std::move(bad).get(), RemoteError);
  CHECK(of_a.gather().empty());
  std::vector<CallRecord> calls = of_a.recording().calls;
  // Of a's row there are the run of both and its own one. b's profiler records the third's call,
  // too.
  REQUIRE(calls.size() == 2);
  if (calls[0].function == "leaf") std::swap(calls[0], calls[1]);
  CHECK(calls[0].function == "batched");
  CHECK(calls[0].calls.size() == 2);
  CHECK(calls[1].function == "leaf");
  CHECK(calls[1].parent == 0);
}

TEST_CASE("rows that a handler gives to a batcher of its own process are what it does, once") {
  Isolated nodes;
  const Batcher<int(int)> batcher = nodes.make();
  nodes.pair.b->expose("own", batcher);
  nodes.pair.b->expose("f", [&](int number) -> Future<int> {
    return nodes.pair.delayed(5ms).then([&, number] {
      return when_all(batcher(number), batcher(number + 1)).then([](std::tuple<int, int> both) {
        return std::get<0>(both) + std::get<1>(both);
      });
    });
  });
  Profiler of_a(*nodes.pair.a);
  CHECK(nodes.pair.a->call<int(int)>("b", "f", 1).get() == 3);
  const Recording recording = of_a.recording();
  REQUIRE(recording.calls.size() == 1);
  const CallRecord& call = recording.calls[0];
  CHECK(call.batch.number == 0);
  CHECK(test::phases_of(call).handler >= 5ms);
  REQUIRE(call.calls.size() == 1);
  CHECK_FALSE(call.calls[0].shared);
  CHECK(call.calls[0].parent == call.span.span_number());
}

TEST_CASE("an operator that ran for a handler's rows and for others' names the handler's call") {
  test::SampleWorld world;
  Recording recording{.calls = {world.call("f", 0, 1, 0us)}};
  test::SampleWorld::run(recording.calls[0], "mul", 1us, 2us).shared = true;
  const json trace = json::parse(chrome_trace(recording));
  const auto& events = trace.at("traceEvents");
  const auto operators = std::count_if(events.begin(), events.end(), [](const json& event) {
    return event.value("cat", "") == "operator" && event.at("args").contains("span_id") &&
           !event.at("args").contains("batch");
  });
  CHECK(operators == 1);
  CHECK(otlp(recording, 0s, {.operators = true}).find("batchrpc.batch.number") ==
        std::string::npos);
}

}  // namespace profiled_batches_test
}  // namespace batchrpc
