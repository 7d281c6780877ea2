#include "batchrpc/profile/otlp.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "profile/sample_records.hpp"

namespace batchrpc {
namespace otlp_test {

using namespace std::chrono_literals;
using nlohmann::json;
using test::SampleWorld;

constexpr Duration kWall = 1'700'000'000s;

// Key to value, whose type is in its name.
std::map<std::string, std::string> attributes(const json& of) {
  std::map<std::string, std::string> found;
  for (const json& attribute : of["attributes"]) {
    const json& value = attribute["value"];
    found[attribute["key"]] = value.begin().key() + " " + value.begin()->get<std::string>();
  }
  return found;
}

struct Spans {
  explicit Spans(const std::string& lines) {
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line); ++count) {
      const json request = json::parse(line);
      REQUIRE(request["resourceSpans"].size() == 1);
      const json& of_node = request["resourceSpans"][0];
      const auto resource = attributes(of_node["resource"]);
      resources[resource.at("service.name")] = resource;
      for (const json& span : of_node["scopeSpans"][0]["spans"]) {
        all.push_back(span);
        all.back()["service"] = resource.at("service.name").substr(12);
      }
    }
  }

  const json& one(const std::string& name, int kind) const {
    for (const json& span : all) {
      if (span["name"] == name && span["kind"] == kind) return span;
    }
    FAIL("there is no span " << name);
    throw 0;  // not reached
  }

  std::size_t count = 0;  // of lines
  std::vector<json> all;
  std::map<std::string, std::map<std::string, std::string>> resources;
};

std::string at(Duration time) {
  return std::to_string((SampleWorld::at(time).time_since_epoch() + kWall).count());
}

// w0 calls f of w1, in a batch, which runs an operator and calls g of w2.
Recording nested_recording() {
  SampleWorld world;
  world.ahead = {{1, 3s}, {2, -50s}};
  Recording recording{.node = "w0", .rank = 0};
  CallPhases phases = SampleWorld::kUsual;
  phases.reply = phases.wire;
  phases.batch = 5us;
  phases.handler = 200us;
  CallRecord call = world.call("f", 0, 1, 0us, phases, {.number = 9, .rows = 4});
  SampleWorld::run(call, "aten::add", 5us, 10us);
  SampleWorld::nest(call, world.call("g", 1, 2, 40us)).error = "TimedOut";
  recording.calls.push_back(std::move(call));
  return recording;
}

TEST_CASE("a call is a client's span, and its child a server's, of two services") {
  const Spans spans(otlp(nested_recording(), kWall));
  CHECK(spans.count == 3);
  CHECK(spans.all.size() == 4);
  const json& client = spans.one("f", 3);
  CHECK(client["service"] == "w0");
  CHECK(client["traceId"] == "00000000000000000000000000000007");
  CHECK(client["spanId"] == "0000000000000001");
  CHECK_FALSE(client.contains("parentSpanId"));
  CHECK_FALSE(client.contains("status"));
  CHECK(client["startTimeUnixNano"] == at(0us));
  CHECK(client["endTimeUnixNano"] == at(233us));
  const json& server = spans.one("f", 2);
  CHECK(server["service"] == "w1");
  CHECK(server["parentSpanId"] == client["spanId"]);
  CHECK(server["spanId"] != client["spanId"]);
  CHECK(server["traceId"] == client["traceId"]);
  CHECK(server["startTimeUnixNano"] == at(13us));
  CHECK(server["endTimeUnixNano"] == at(221us));
  const json& nested = spans.one("g", 3);
  CHECK(nested["service"] == "w1");
  CHECK(nested["parentSpanId"] == server["spanId"]);
  CHECK(nested["status"]["code"] == 2);
  CHECK(nested["status"]["message"] == "TimedOut");
  CHECK(attributes(nested).at("error.type") == "stringValue TimedOut");
  CHECK(spans.resources.at("stringValue w1").at("service.instance.id") == "stringValue 1");
  CHECK(spans.resources.at("stringValue w1").at("process.pid") == "intValue 1001");
}

TEST_CASE("spans say what a call was, and what it spent its time on") {
  const Spans spans(otlp(nested_recording(), kWall));
  auto client = attributes(spans.one("f", 3));
  CHECK(client["rpc.system"] == "stringValue batchrpc");
  CHECK(client["rpc.method"] == "stringValue f");
  CHECK(client["batchrpc.caller"] == "stringValue w0");
  CHECK(client["batchrpc.callee"] == "stringValue w1");
  CHECK(client["batchrpc.bytes_out"] == "intValue 100");
  CHECK(client["batchrpc.bytes_in"] == "intValue 60");
  CHECK(client["batchrpc.batch.number"] == "intValue 9");
  CHECK(client["batchrpc.batch.rows"] == "intValue 4");
  CHECK(client["batchrpc.phase.wire_ns"] == "intValue 10000");
  CHECK(client["batchrpc.phase.batch_ns"] == "intValue 5000");
  CHECK(client["batchrpc.phase.handler_ns"] == "intValue 200000");
  CHECK(attributes(spans.one("f", 2)).at("batchrpc.batch.rows") == "intValue 4");
}

TEST_CASE("the span of a call that its callee alone tells of says whether it failed") {
  Recording recording = nested_recording();
  CHECK_FALSE(Spans(otlp(recording, kWall)).one("g", 2).contains("status"));  // its caller's has it
  CallRecord& answered = recording.calls[0];
  test::lose_caller(answered);
  answered.calls.clear();
  answered.error = "std::out_of_range";
  answered.left_out = 3;
  const Spans spans(otlp(recording, kWall));
  REQUIRE(spans.all.size() == 1);
  const json& server = spans.one("f", 2);
  CHECK(server["status"]["code"] == 2);
  CHECK(server["status"]["message"] == "std::out_of_range");
  const auto its = attributes(server);
  CHECK(its.at("error.type") == "stringValue std::out_of_range");
  CHECK(its.at("batchrpc.left_out") == "intValue 3");
  CHECK(its.at("batchrpc.bytes_in") == "intValue 60");
  CHECK_FALSE(its.contains("batchrpc.phase.wire_ns"));
}

TEST_CASE("an error that the callee alone knows of is its span's") {
  Recording recording = nested_recording();
  recording.calls[0].calls.clear();
  recording.calls[0].error = "std::out_of_range";
  for (const bool alone : {false, true}) {
    recording.calls[0].failed_at_callee_alone = alone;
    const Spans spans(otlp(recording, kWall));
    CHECK(spans.one("f", 2).contains("status") == alone);
    CHECK(spans.one("f", 3).contains("status") == !alone);
  }
}

TEST_CASE(
    "a handler that goes on after its call has ended has its whole span, and its calls' parent") {
  SampleWorld world;
  CallPhases phases = SampleWorld::kUsual;
  phases.handler = 200us;
  CallRecord callees = world.call("f", 0, 1, 0us, phases);
  CallRecord callers = callees;
  test::lose_callee(callers);
  callers.replied = {};
  callers.ended = SampleWorld::at(50us);
  callers.error = "TimedOut";
  callers.parent = 42;
  callers.parent_is_external = true;
  test::lose_caller(callees);
  CallRecord nested = SampleWorld::nest(callees, world.call("g", 1, 2, 100us));
  callees.calls.clear();
  phases.reply = phases.wire;
  Recording recording{.calls = {callers}, .node = "w0"};
  merge(recording, Recording{.calls = {nested, callees},
                             .clock_samples = {world.call("h", 0, 1, 1ms, phases)}});
  const Spans spans(otlp(recording, kWall));
  CHECK(spans.all.size() == 4);
  const json& client = spans.one("f", 3);
  CHECK(client["parentSpanId"] == "000000000000002a");
  CHECK(client["endTimeUnixNano"] == at(50us));
  const json& server = spans.one("f", 2);
  CHECK(server["parentSpanId"] == client["spanId"]);
  CHECK(server["startTimeUnixNano"] == at(13us));
  CHECK(server["endTimeUnixNano"] == at(216us));
  CHECK(spans.one("g", 3)["parentSpanId"] == server["spanId"]);
}

TEST_CASE("both sides make the same span of the callee") {
  const Recording recording = nested_recording();
  const Recording of_callee{.calls = recording.calls[0].calls, .node = "w1"};
  const Spans whole(otlp(recording, kWall));
  const Spans part(otlp(of_callee, kWall));
  CHECK(part.one("g", 3)["parentSpanId"] == whole.one("f", 2)["spanId"]);
  CHECK(part.one("g", 2)["spanId"] == whole.one("g", 2)["spanId"]);
}

TEST_CASE("operators are spans if that is asked for") {
  const Spans spans(otlp(nested_recording(), kWall, {.operators = true}));
  CHECK(spans.all.size() == 5);
  const json& run = spans.one("aten::add", 1);
  CHECK(run["service"] == "w1");
  CHECK(run["parentSpanId"] == spans.one("f", 2)["spanId"]);
  CHECK(run["startTimeUnixNano"] == at(26us));
  CHECK(run["endTimeUnixNano"] == at(31us));
  CHECK(attributes(run).at("batchrpc.batch.number") == "intValue 9");
}

TEST_CASE(
    "a call whose callee told nothing is a client's span, and one without a context is none") {
  Recording recording = nested_recording();
  CallRecord& nested = recording.calls[0].calls[0];
  test::lose_callee(nested);
  recording.calls[0].span = {};
  const Spans spans(otlp(recording, kWall));
  CHECK(spans.all.size() == 1);
  CHECK(spans.one("g", 3).contains("parentSpanId"));
}

TEST_CASE("lines are of a thousand spans at most, and a stream gets the same") {
  SampleWorld world;
  Recording recording{.node = "w0"};
  for (int i = 0; i < 2500; ++i)
    recording.calls.push_back(world.call("f", 0, 1, i * 1us));
  const std::string lines = otlp(recording, kWall);
  const Spans spans(lines);
  CHECK(spans.count == 6);
  CHECK(spans.all.size() == 5000);
  std::ostringstream out;
  otlp(recording, kWall, out);
  const bool equal = out.str() == lines;
  CHECK(equal);
  CHECK(otlp(Recording{}, kWall).empty());
}

TEST_CASE("spans of any records have ids of their own, and end no sooner than they begin") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Spans spans(otlp(test::random_recording(seed, 40), kWall, {.operators = true}));
    std::set<std::string> ids;
    for (const json& span : spans.all) {
      if (!ids.insert(span["spanId"]).second) FAIL("twice: " << span.dump());
      const auto begin = std::stoull(span["startTimeUnixNano"].get<std::string>());
      const auto end = std::stoull(span["endTimeUnixNano"].get<std::string>());
      if (end < begin) FAIL("ends before it begins: " << span.dump());
    }
  }
}

}  // namespace otlp_test
}  // namespace batchrpc
