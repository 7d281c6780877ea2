#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "process/program_run.hpp"

// The program `profile_example`, and what it writes: its traces, read back.
namespace batchrpc_examples {
namespace profile_example_test {

using nlohmann::json;

const std::string kProgram = std::string(BATCHRPC_BIN_DIR) + "/profile_example";

int run_example(const Folder& folder, Words arguments) {
  arguments.insert(arguments.begin(), kProgram);
  return end_of(start(folder, "example", arguments), folder, "example", 60s);
}

/// A trace's events, by what they are.
struct Trace {
  explicit Trace(json all) : text(std::move(all)) {
    for (const json& event : text.at("traceEvents")) {
      const std::string kind = event.at("ph");
      REQUIRE(event.at("pid").is_number_unsigned());
      REQUIRE(event.at("tid").is_number_unsigned());
      REQUIRE(event.at("name").is_string());
      if (kind == "X") {
        REQUIRE(event.at("ts").is_number());
        REQUIRE(event.at("dur").get<double>() >= 0);
        slices[event.at("cat")].push_back(&event);
      } else if (kind == "s" || kind == "t" || kind == "f") {
        flows[event.at("id")].push_back(&event);
      } else {
        REQUIRE(kind == "M");
      }
    }
  }

  // The spans of the calls of whose slices of that category one has the event in its row and time.
  [[nodiscard]] std::set<std::string> bound_to(const json& event,
                                               const std::string& category) const {
    std::set<std::string> spans;
    for (const json* slice : slices.at(category)) {
      const double begin = slice->at("ts");
      const double at = event.at("ts");
      if (slice->at("pid") == event.at("pid") && slice->at("tid") == event.at("tid") &&
          begin <= at && at <= begin + slice->at("dur").get<double>())
        spans.insert(slice->at("args").at("span_id"));
    }
    return spans;
  }

  json text;
  std::map<std::string, std::vector<const json*>> slices;
  std::map<int, std::vector<const json*>> flows;
};

std::set<std::string> spans_of(const std::vector<const json*>& slices) {
  std::set<std::string> spans;
  for (const json* slice : slices)
    spans.insert(slice->at("args").at("span_id"));
  return spans;
}

void check_trace(const Trace& trace, std::size_t calls) {
  const auto& made = trace.slices.at("call");
  CHECK(made.size() == calls);
  CHECK(spans_of(made) == spans_of(trace.slices.at("handler")));  // each has its handler
  for (const json* call : made) {
    double phases = 0;
    for (const auto& [name, time] : call->at("args").at("phases").items())
      phases += time.get<double>();
    const double whole = call->at("dur");
    CHECK(std::abs(phases - whole) <= 0.01 * whole);
  }
  CHECK(trace.flows.size() == calls);
  for (const auto& [id, steps] : trace.flows) {
    REQUIRE(steps.size() == 3);  // from the call to its own handler, and back to the call
    CHECK(steps.front()->at("ph") == "s");
    CHECK(steps.back()->at("ph") == "f");
    const auto from = trace.bound_to(*steps[0], "call");
    const auto through = trace.bound_to(*steps[1], "handler");
    REQUIRE(from.size() == 1);
    CHECK(through.contains(*from.begin()));
    CHECK(trace.bound_to(*steps[2], "call").contains(*from.begin()));
  }
  for (const json& clock : trace.text.at("metadata").at("clocks"))
    CHECK(clock.at("known") == true);
}

TEST_CASE("profile_example prints its tables, and writes traces that hold together") {
  const Folder folder;
  REQUIRE(run_example(folder, {"--output-dir", folder.file("traces"), "--calls", "4",
                               "--waiting-ms", "10"}) == 0);
  const std::string out = folder.text("example.out");
  for (const char* name :
       {"rpc_async#aten::add(worker0 -> worker1)#remote_op: add",
        "rpc_async#aten::mul(worker0 -> worker1)#remote_op: mul",
        "function_with_operators(worker0 -> worker1)#remote_op: rand",
        "heavy_function(worker0 -> worker2)#remote_op: sigmoid", "Self CPU time total", "Node ID",
        "waiting_function(worker0 -> worker2)", "end to end"}) {  // which is of phases_table()
    CAPTURE(name);
    CHECK(out.find(name) != std::string::npos);
  }
  const auto trace = [&](const std::string& name) {
    return Trace(folder.json("traces/" + name + ".trace.json"));
  };
  check_trace(trace("operators"), 2);
  check_trace(trace("function"), 1);
  check_trace(trace("computing"), 8);
  const Trace waiting = trace("waiting");
  check_trace(waiting, 8);
  // One thread runs them one after the other, eight run them side by side.
  std::map<std::string, std::set<json>> rows;
  for (const json* handler : waiting.slices.at("handler"))
    rows[std::to_string(handler->at("pid").get<int>())].insert(handler->at("tid"));
  std::vector<std::size_t> threads;
  for (const auto& [process, of_process] : rows)
    threads.push_back(of_process.size());
  std::sort(threads.begin(), threads.end());
  REQUIRE(threads.size() == 2);
  CHECK(threads[0] == 1);
  CHECK(threads[1] > 1);
}

TEST_CASE("profile_example gathers one trace of its processes, which has each call once") {
  const Folder folder;
  REQUIRE(run_example(folder, {"--output-dir", folder.file("."), "--calls", "1", "--waiting-ms",
                               "1"}) == 0);
  CHECK(folder.text("example.err").find("not gathered") == std::string::npos);
  const Trace trace(folder.json("gathered.trace.json"));
  check_trace(trace, 3);
  // Of worker1's two calls, one was made by a handler, for worker0, and the other for nobody.
  std::multiset<std::string> calls;
  std::string handled;
  for (const json* call : trace.slices.at("call")) {
    const json& its = call->at("args");
    calls.insert(its.at("caller").get<std::string>() + " -> " +
                 its.at("callee").get<std::string>());
    if (its.at("function") == "passed_on") handled = its.at("span_id");
  }
  CHECK(calls == std::multiset<std::string>{"worker0 -> worker1", "worker1 -> worker2",
                                            "worker1 -> worker2"});
  const auto& made = trace.slices.at("call");
  CHECK(std::count_if(made.begin(), made.end(), [&](const json* call) {
          return call->at("args").value("parent_id", "") == handled;
        }) == 1);
  std::set<std::string> nodes;
  std::set<std::string> processes;
  for (const json& event : trace.text.at("traceEvents")) {
    if (event.at("name") == "process_name") nodes.insert(event.at("args").at("name"));
    if (event.at("name") == "process_labels") processes.insert(event.at("args").at("labels"));
  }
  CHECK(nodes == std::set<std::string>{"worker0 (rank 0)", "worker1 (rank 1)", "worker2 (rank 2)"});
  CHECK(processes.size() == 3);
  const json& clocks = trace.text.at("metadata").at("clocks");
  REQUIRE(clocks.size() == 3);
  CHECK(clocks[0].at("node") == "worker0");
  for (std::size_t i = 1; i < clocks.size(); ++i) {
    CHECK(clocks[i].at("samples") > 0);
    CHECK(clocks[i].at("error_ns") > 0);
    CHECK(std::abs(clocks[i].at("offset_ns").get<double>()) <=  // of one machine
          clocks[i].at("error_ns").get<double>());
  }
}

TEST_CASE("profile_example says what is wrong with its arguments") {
  const Folder folder;
  CHECK(run_example(folder, {"--output-dir", "/proc/nowhere"}) == 2);
  CHECK(folder.text("example.err").find("--output-dir") != std::string::npos);
  CHECK(run_example(folder, {"--calls", "0"}) == 2);
}

}  // namespace profile_example_test
}  // namespace batchrpc_examples
