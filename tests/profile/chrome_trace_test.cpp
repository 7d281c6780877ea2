#include "batchrpc/profile/chrome_trace.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/sample_records.hpp"
#include "profile/walk.hpp"

namespace batchrpc {
namespace chrome_trace_test {

using namespace std::chrono_literals;
using nlohmann::json;
using test::SampleWorld;
using Row = std::pair<int, int>;  // process, thread

// In nanoseconds, exactly.
std::int64_t nanoseconds(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

struct Trace {
  explicit Trace(const Recording& recording) : whole(json::parse(chrome_trace(recording))) {
    for (const json& event : whole["traceEvents"]) {
      const auto kind = event["ph"].get<std::string>();
      if (kind == "M") {
        if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
        if (event["name"] == "thread_name") rows[row(event)] = event["args"]["name"];
      } else if (kind == "X") {
        slices.push_back(event);
      } else {
        flows[event["id"]].push_back(event);
      }
    }
  }

  static Row row(const json& event) { return {event["pid"].get<int>(), event["tid"].get<int>()}; }

  std::vector<json> of(std::string_view category) const {
    std::vector<json> found;
    std::copy_if(slices.begin(), slices.end(), std::back_inserter(found),
                 [&](const json& slice) { return slice["cat"] == category; });
    return found;
  }
  std::string row_name(const json& event) const {
    return processes.at(event["pid"]) + ", " + rows.at(row(event));
  }

  // What every trace keeps to; empty: this one does.
  std::string fault() const;

  json whole;
  std::vector<json> slices;
  std::map<int, std::vector<json>> flows;
  std::map<int, std::string> processes;
  std::map<Row, std::string> rows;
};

std::string Trace::fault() const {
  struct Slice {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  std::map<Row, std::vector<Slice>> of_rows;
  for (const json& event : slices) {
    const std::int64_t begin = nanoseconds(event["ts"]);
    const std::int64_t length = nanoseconds(event["dur"]);
    if (begin < 0 || length < 0) return "before the first: " + event.dump();
    if (rows.count(row(event)) == 0) return "in a row without a name: " + event.dump();
    of_rows[row(event)].push_back({begin, begin + length});
  }
  for (auto& [row, in_row] : of_rows) {
    // In the order of the file where they begin together: those around others come first.
    std::stable_sort(in_row.begin(), in_row.end(),
                     [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
    std::vector<std::int64_t> ends;
    for (const Slice& slice : in_row) {
      while (!ends.empty() && ends.back() <= slice.begin)
        ends.pop_back();
      if (!ends.empty() && slice.end > ends.back()) return "slices cross in " + rows.at(row);
      ends.push_back(slice.end);
    }
  }
  for (const auto& [id, flow] : flows) {
    if (flow.front()["ph"] != "s" || flow.back()["ph"] != "f") return "a flow without an end";
    std::int64_t last = 0;
    for (const json& arrow : flow) {
      const std::int64_t time = nanoseconds(arrow["ts"]);
      if (time < last) return "a flow goes back in time: " + arrow.dump();
      last = time;
      const auto& in_row = of_rows[row(arrow)];
      const auto after =
          std::upper_bound(in_row.begin(), in_row.end(), time,
                           [](std::int64_t at, const Slice& slice) { return at < slice.begin; });
      if (std::none_of(in_row.begin(), after,
                       [&](const Slice& slice) { return time <= slice.end; })) {
        return "a flow in no slice: " + arrow.dump();
      }
    }
  }
  return "";
}

// w0 calls f of w1, which runs an operator and calls g of w2.
Recording nested_recording() {
  SampleWorld world;
  world.ahead = {{1, 3s}, {2, -50s}};
  Recording recording{.node = "w0", .rank = 0};
  CallPhases phases = SampleWorld::kUsual;
  phases.handler = 200us;
  CallRecord call = world.call("f", 0, 1, 0us, phases);
  SampleWorld::run(call, "aten::add", 5us, 10us);
  SampleWorld::nest(call, world.call("g", 1, 2, 40us));
  recording.calls.push_back(std::move(call));
  return recording;
}

TEST_CASE("a call has its phases, its handler, and operators in rows of the nodes") {
  const Trace trace(nested_recording());
  CHECK(trace.fault() == "");
  CHECK(trace.processes ==
        std::map<int, std::string>{{1, "w0 (rank 0)"}, {2, "w1 (rank 1)"}, {3, "w2 (rank 2)"}});
  const auto calls = trace.of("call");
  REQUIRE(calls.size() == 2);
  CHECK(calls[0]["name"] == "f");
  CHECK(trace.row_name(calls[0]) == "w0 (rank 0), calls 1");
  CHECK(calls[0]["ts"] == 0.0);
  CHECK(calls[0]["dur"] == 226.0);
  CHECK(trace.row_name(calls[1]) == "w1 (rank 1), calls 1");
  const auto handlers = trace.of("handler");
  REQUIRE(handlers.size() == 2);
  CHECK(trace.row_name(handlers[0]) == "w1 (rank 1), thread 101");
  CHECK(handlers[0]["ts"] == 15.0);  // 16, but both ways of the call count as equally long
  CHECK(handlers[0]["dur"] == 200.0);
  CHECK(trace.row_name(handlers[1]) == "w2 (rank 2), thread 201");
  const auto operators = trace.of("operator");
  REQUIRE(operators.size() == 1);
  CHECK(operators[0]["name"] == "aten::add");
  CHECK(trace.row_name(operators[0]) == "w1 (rank 1), thread 101");
  CHECK(operators[0]["ts"] == 20.0);
  CHECK(operators[0]["dur"] == 5.0);
  // 7 of 8 phases, for there is no batch, of both calls.
  CHECK(trace.of("phase").size() == 14);
  CHECK(trace.flows.size() == 2);
  CHECK(trace.flows.at(1).size() == 3);
}

TEST_CASE("a call's arguments say all that is known of it") {
  Recording recording = nested_recording();
  CallRecord& nested = recording.calls[0].calls[0];
  nested.error = "TimedOut";
  nested.left_out = 4;
  const json arguments = Trace(recording).of("call")[1]["args"];
  CHECK(arguments["function"] == "g");
  CHECK(arguments["caller"] == "w1");
  CHECK(arguments["callee"] == "w2");
  CHECK(arguments["bytes_out"] == 100);
  CHECK(arguments["bytes_in"] == 60);
  CHECK(arguments["error"] == "TimedOut");
  CHECK(arguments["trace_id"] == "00000000000000000000000000000007");
  CHECK(arguments["span_id"] == "0000000000000002");
  CHECK(arguments["parent_id"] == "0000000000000001");
  CHECK(arguments["left_out"] == 4);
  CHECK(arguments["phases"]["handler"] == 20.0);
  CHECK(arguments["phases"].size() == 8);
  CHECK_FALSE(arguments.contains("batch"));
}

TEST_CASE("a handler's arguments say all that is known of a call that its callee alone tells of") {
  Recording recording = nested_recording();
  CHECK_FALSE(Trace(recording).of("handler")[1]["args"].contains("trace_id"));  // its call has it
  CallRecord answered = recording.calls[0].calls[0];
  test::lose_caller(answered);
  answered.error = "std::out_of_range";
  answered.left_out = 4;
  const Trace trace({.calls = {answered}, .node = "w2"});
  CHECK(trace.of("call").empty());
  json arguments = trace.of("handler").at(0)["args"];
  CHECK(arguments["function"] == "g");
  CHECK(arguments["caller"] == "w1");
  CHECK(arguments["callee"] == "w2");
  CHECK(arguments["bytes_out"] == 100);
  CHECK(arguments["bytes_in"] == 60);
  CHECK(arguments["error"] == "std::out_of_range");
  CHECK(arguments["trace_id"] == "00000000000000000000000000000007");
  CHECK(arguments["span_id"] == "0000000000000002");
  CHECK(arguments["parent_id"] == "0000000000000001");
  CHECK(arguments["left_out"] == 4);
}

TEST_CASE("calls that overlap have rows of their own, and rows are used again") {
  SampleWorld world;
  Recording recording{.node = "w0"};
  for (const Duration start : {0us, 20us, 46us, 66us})
    recording.calls.push_back(world.call("f", 0, 1, start));
  const Trace trace(recording);
  CHECK(trace.fault() == "");
  std::vector<std::string> rows;
  for (const json& call : trace.of("call"))
    rows.push_back(trace.rows.at(Trace::row(call)));
  CHECK(rows == std::vector<std::string>{"calls 1", "calls 2", "calls 1", "calls 2"});
}

TEST_CASE("handlers of a thread that cross go into its further rows") {
  SampleWorld world;
  Recording recording{.node = "w0"};
  for (const Duration start : {0us, 10us, 100us})
    recording.calls.push_back(world.call("f", 0, 1, start));
  const Trace trace(recording);
  CHECK(trace.fault() == "");
  std::vector<std::string> rows;
  for (const json& handler : trace.of("handler"))
    rows.push_back(trace.rows.at(Trace::row(handler)));
  CHECK(rows == std::vector<std::string>{"thread 101", "thread 101 (2)", "thread 101"});
}

TEST_CASE("a batch is shown once, with what ran for it, and arrows from its rows") {
  SampleWorld world;
  world.ahead[1] = 3s;
  Recording recording{.node = "w0"};
  for (int i = 0; i < 3; ++i) {
    CallPhases phases = SampleWorld::kUsual;
    phases.batch = 30us - i * 10us;
    CallRecord row =
        world.call("act", i == 2 ? 2 : 0, 1, i * 10us, phases, {.number = 5, .rows = 3});
    SampleWorld::run(row, "aten::matmul", 1us, 9us);
    recording.calls.push_back(std::move(row));
  }
  const Trace trace(recording);
  CHECK(trace.fault() == "");
  const auto batches = trace.of("batch");
  REQUIRE(batches.size() == 1);
  CHECK(batches[0]["name"] == "batch of act");
  CHECK(trace.row_name(batches[0]) == "w1 (rank 1), batches 1");
  CHECK(batches[0]["args"]["number"] == 5);
  CHECK(batches[0]["args"]["rows"] == 3);
  CHECK(batches[0]["args"]["span_ids"].size() == 3);
  CHECK(batches[0]["dur"] == 20.0);
  const auto operators = trace.of("operator");
  REQUIRE(operators.size() == 1);
  CHECK(trace.row_name(operators[0]) == "w1 (rank 1), thread 101");
  // Rows wait beside what their thread does.
  for (const json& handler : trace.of("handler"))
    CHECK(trace.row_name(handler) != "w1 (rank 1), thread 101");
  CHECK(trace.of("call")[0]["args"]["batch"]["number"] == 5);
  REQUIRE(trace.flows.size() == 3);
  for (const auto& [id, flow] : trace.flows) {
    REQUIRE(flow.size() == 4);
    CHECK(Trace::row(flow[2]) == Trace::row(batches[0]));
  }
}

TEST_CASE("a batch lasts until its last row is told, if its handler ran more than once") {
  SampleWorld world;
  Recording recording{.node = "w0"};
  for (int i = 0; i < 2; ++i) {
    CallRecord row = world.call("act", 0, 1, 0us, SampleWorld::kUsual, {.number = 5, .rows = 2});
    row.batch.end += i * 100us;
    row.finished += i * 100us;
    row.replied += i * 100us;
    row.ended += i * 100us;
    recording.calls.push_back(std::move(row));
  }
  const Trace trace(recording);
  CHECK(trace.fault() == "");
  REQUIRE(trace.of("batch").size() == 1);
  CHECK(trace.of("batch")[0]["dur"] == 120.0);
}

TEST_CASE("a batch is as long as its node's clock says, whatever other clocks say of its rows") {
  SampleWorld world;
  Recording recording{.node = "w0"};
  for (int i = 0; i < 10; ++i)
    recording.calls.push_back(world.call("g", i % 2 == 0 ? 2 : 0, 1, i * 1ms));
  const BatchRecord batch{.number = 5, .rows = 2};
  recording.calls.push_back(world.call("act", 0, 1, 1s, SampleWorld::kUsual, batch));
  world.ahead[2] = 100ms;  // since the calls before, from which its offset is known
  recording.calls.push_back(world.call("act", 2, 1, 1s, SampleWorld::kUsual, batch));
  const Trace trace(recording);
  REQUIRE(trace.of("batch").size() == 1);
  CHECK(trace.of("batch")[0]["dur"] == 20.0);
}

TEST_CASE("a handler that went on when its call had timed out is shown as long as it was") {
  SampleWorld world;
  world.ahead[1] = 3s;
  const CallRecord sample = world.call("f", 0, 1, 100us);  // that tells of the clocks
  const bool in_batch = GENERATE(false, true);
  CallRecord call = world.call("slow", 0, 1, 0us, SampleWorld::kUsual,
                               in_batch ? BatchRecord{.number = 5, .rows = 1} : BatchRecord{});
  call.replied = TimePoint();
  call.ended = SampleWorld::at(20us);
  call.error = "TimedOut";
  const Trace trace(Recording{.calls = {call, sample}, .node = "w0"});
  CHECK(trace.fault() == "");
  const auto handlers = trace.of("handler");
  REQUIRE(handlers.size() == 2);
  CHECK(handlers[0]["name"] == "slow");
  CHECK(handlers[0]["dur"] == 20.0);
  CHECK(trace.of("call")[0]["dur"] == 20.0);
  REQUIRE(trace.flows.size() == 2);
  const auto& flow = trace.flows.begin()->second;
  REQUIRE(flow.size() == (in_batch ? 3 : 2));
  CHECK(trace.row_name(flow[1]).rfind("w1", 0) == 0);
  CHECK(trace.row_name(flow.back()).rfind("w1", 0) == 0);
}

TEST_CASE("a call whose callee told nothing has no handler") {
  SampleWorld world;
  CallRecord call = world.call("f", 0, 1, 0us);
  test::lose_callee(call);
  call.error = "PeerLost";
  const Trace trace({.calls = {call}, .node = "w0"});
  CHECK(trace.of("call").size() == 1);
  CHECK(trace.of("handler").empty());
  CHECK(trace.flows.empty());
}

TEST_CASE("the trace says how well clocks are known, and what is missing") {
  Recording recording = nested_recording();
  recording.sampled = 100;
  recording.left_out = 2;
  recording.calls[0].left_out = 3;
  const Trace trace(recording);
  for (const char* key : {"metadata", "otherData"}) {
    const json& metadata = trace.whole[key];
    CHECK(metadata["sampled"] == 100);
    CHECK(metadata["left_out"] == 5);
    CHECK(metadata["batchrpc"].is_string());
    REQUIRE(metadata["clocks"].size() == 3);
    CHECK(metadata["clocks"][0]["node"] == "w0");
    const json& w1 = metadata["clocks"][1];
    CHECK(std::abs(w1["offset_ns"].get<std::int64_t>() - 3'000'000'000) <=
          w1["error_ns"].get<std::int64_t>());
    CHECK(w1["known"] == true);
    CHECK(w1["samples"] == 1);
  }
}

TEST_CASE("any names make a trace that parses") {
  Recording recording = nested_recording();
  CallRecord& call = recording.calls[0];
  call.function = "\"quoted\"\n\x01\xff";
  call.caller.node = "back\\slash";
  call.operators[0].name = "\xc3";
  const Trace trace(recording);
  CHECK(trace.of("call")[0]["name"] == "\"quoted\"\n\x01\uFFFD");
}

TEST_CASE("a stream gets what a string would") {
  const Recording recording = test::random_recording(3, 300);
  std::ostringstream out;
  chrome_trace(recording, out);
  const bool equal = out.str() == chrome_trace(recording);
  CHECK(equal);
  CHECK(Trace(Recording{}).slices.empty());
}

TEST_CASE("in the trace of any records no slices cross, and each flow leads from slice to slice") {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    const Recording recording = test::random_recording(seed, 40);
    const Trace trace(recording);
    INFO("seed " << seed);
    REQUIRE(trace.fault() == "");
    std::size_t calls = 0;
    std::size_t handlers = 0;
    profile::for_each_call(recording.calls, [&](const CallRecord& call, const CallRecord*) {
      ++calls;
      if (CallTimes::has_callee(call)) ++handlers;
    });
    REQUIRE(trace.of("call").size() == calls);
    REQUIRE(trace.of("handler").size() == handlers);
    REQUIRE(trace.flows.size() == handlers);
    for (const json& call : trace.of("call")) {
      std::int64_t total = 0;
      for (const json& phase : call["args"]["phases"])
        total += nanoseconds(phase);
      if (total != nanoseconds(call["dur"])) FAIL("phases do not add up");
    }
  }
}

TEST_CASE("a hundred thousand calls are written") {
  SampleWorld world;
  Recording recording{.node = "w0"};
  for (int i = 0; i < 100'000; ++i)
    recording.calls.push_back(world.call("f", i % 3, 3, i * 100ns));  // 460 at a time
  const std::string trace = chrome_trace(recording);
  CHECK(trace.ends_with("]}\n"));
}

}  // namespace chrome_trace_test
}  // namespace batchrpc
