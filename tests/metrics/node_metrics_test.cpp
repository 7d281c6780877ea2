#include "batchrpc/metrics/node_metrics.hpp"

#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace batchrpc {
namespace node_metrics_test {

CallMetrics some_calls() {
  CallMetrics calls;
  calls.calls = 7;
  calls.ok = 4;
  calls.errors.counts[ErrorCounts::index_of(ErrorCode::timed_out)] = 2;
  calls.in_flight = 1;
  calls.notifications = 3;
  calls.bytes_sent = 1000;
  calls.bytes_received = 500;
  calls.latency.add(1'000, 2);
  calls.latency.add(3'000'000);
  calls.latency.add(200'000'000'000);
  return calls;
}

// With all there is, and names that need escapes.
NodeMetrics some_metrics() {
  NodeMetrics node;
  node.name = "learner \"0\"\\\n";
  node.rank = 0;
  node.incarnation = 0xffff'ffff'ffff'fffe;
  node.uptime = std::chrono::milliseconds(2500);
  node.made = node.answered = some_calls();
  node.functions = {{.name = "ns::f<int>", .made = some_calls(), .answered = some_calls()},
                    {.name = "only \"called\"", .made = some_calls(), .answered = {}}};
  node.peers = {{.name = "peer\\1\n",
                 .rank = 1,
                 .state = "connected",
                 .reconnects = 2,
                 .round_trip = std::chrono::microseconds(150),
                 .bytes_sent = 12,
                 .bytes_received = 34,
                 .made = some_calls(),
                 .functions = {{.function = "ns::f<int>", .made = some_calls()}}},
                {.name = "peer2", .state = "lost"}};
  BatcherMetrics batcher;
  batcher.name = "select_action";
  batcher.rows = 10;
  batcher.answered = 9;
  batcher.rejected = 1;
  batcher.reasons = {{.reason = "idle", .batches = 1}, {.reason = "size", .batches = 2}};
  batcher.sizes.add(3, 3);
  batcher.sizes.add(128);
  batcher.latency.add(5'000'000, 9);
  node.batchers = {batcher};
  node.queue = {.limited = true, .accepted = 3, .running = 2, .waiting = 1, .refused = 8};
  node.rrefs = {.owned = {{.name = "Model", .objects = 2, .holders = 1}},
                .used = {{.name = "peer2", .objects = 4}},
                .in_flight = 1};
  node.last_errors = {{.kind = ErrorRecord::Kind::call,
                       .ago = std::chrono::seconds(1),
                       .code = ErrorCode::timed_out,
                       .function = "f",
                       .peer = "peer2",
                       .text = "tab\there, \x01, \"quoted\""}};
  return node;
}

TEST_CASE("metrics as JSON parse, and have what the struct has") {
  const NodeMetrics node = some_metrics();
  const auto json = nlohmann::json::parse(to_json(node));
  CHECK(json["name"] == node.name);
  CHECK(json["incarnation"] == "18446744073709551614");
  CHECK(json["uptime_ns"] == 2'500'000'000);
  CHECK(json["made"]["calls"] == 7);
  CHECK(json["made"]["errors"]["TimedOut"] == 2);
  CHECK(json["made"]["latency_ns"]["count"] == 4);
  CHECK(json["made"]["latency_ns"]["buckets"].size() == 3);
  CHECK(json["functions"][0]["name"] == "ns::f<int>");
  CHECK(json["functions"][0]["answered"]["in_flight"] == 1);
  CHECK(json["peers"][0]["name"] == "peer\\1\n");
  CHECK(json["peers"][0]["functions"][0]["made"]["bytes_sent"] == 1000);
  CHECK(json["batchers"][0]["reasons"]["size"] == 2);
  CHECK(json["batchers"][0]["sizes"]["max"] == 128);
  CHECK(json["queue"]["refused"] == 8);
  CHECK(json["rrefs"]["owned"][0]["type"] == "Model");
  CHECK(json["last_errors"][0]["text"] == "tab\there, \x01, \"quoted\"");
  CHECK(json["last_errors"][0]["code"] == "TimedOut");
}

TEST_CASE("metrics of a node that has done nothing can be written, too") {
  CHECK(nlohmann::json::parse(to_json(NodeMetrics()))["peers"].empty());
  CHECK(to_prometheus(NodeMetrics()).find("batchrpc_uptime_seconds 0\n") != std::string::npos);
}

TEST_CASE("peers of each state of a connection are told, also where there are none") {
  NodeMetrics metrics;
  metrics.peers.emplace_back().state = "connected";
  metrics.peers.emplace_back().name = kUnknownName;
  const std::string text = to_prometheus(metrics);
  CHECK(text.find("batchrpc_peers{state=\"connected\"} 1\n") != std::string::npos);
  for (const char* const none : {"known", "connecting", "lost"}) {
    CHECK(text.find("batchrpc_peers{state=\"" + std::string(none) + "\"} 0\n") !=
          std::string::npos);
  }
  CHECK(text.find("state=\"\"") == std::string::npos);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

TEST_CASE("a peer's name that is not UTF-8 does not make the whole text unreadable") {
  NodeMetrics metrics;
  metrics.peers.emplace_back().name = "a\xff\n\"\xe2\x82\xac";
  metrics.peers.back().functions.emplace_back().function = "f";
  const std::string text = to_prometheus(metrics);
  CHECK(text.find("\xff") == std::string::npos);
  CHECK(text.find("=\"a\uFFFD\\n\\\"\u20ac\"") != std::string::npos);
}

TEST_CASE("what a terminal would obey in a peer's name is escaped in the text for Prometheus") {
  NodeMetrics metrics;
  metrics.peers.emplace_back().name = "a\x1b[2J\u202etxt";
  metrics.peers.back().functions.emplace_back().function = "f";
  const std::string text = to_prometheus(metrics);
  CHECK(text.find(R"(="a\\x1b[2J\\u202etxt")") != std::string::npos);
}

TEST_CASE(
    "the text for Prometheus has each metric once, with its help and type before its samples") {
  std::set<std::string> seen;
  std::string family;
  for (const std::string& line : lines_of(to_prometheus(some_metrics()))) {
    INFO(line);
    std::istringstream words(line);
    std::string mark;
    std::string kind;
    std::string name;
    if (line.starts_with("# ")) {
      words >> mark >> kind >> name;
      if (kind == "HELP") CHECK(seen.insert(name).second);
      if (kind == "TYPE") CHECK(seen.contains(name));
      family = name;
    } else {
      CHECK(line.starts_with(family));
      CHECK(line.find(' ') != std::string::npos);
    }
  }
  CHECK(seen.size() > 30);
}

TEST_CASE(
    "a histogram for Prometheus has cumulative buckets, its sum in base units, and its count") {
  const std::string text = to_prometheus(some_metrics());
  const std::string name = "batchrpc_call_duration_seconds";
  const auto has = [&](const std::string& sample) {
    INFO(sample);
    CHECK(text.find(name + sample + "\n") != std::string::npos);
  };
  has("_bucket{function=\"ns::f<int>\",le=\"1e-06\"} 2");
  has("_bucket{function=\"ns::f<int>\",le=\"0.002\"} 2");
  has("_bucket{function=\"ns::f<int>\",le=\"0.005\"} 3");
  has("_bucket{function=\"ns::f<int>\",le=\"100\"} 3");
  has("_bucket{function=\"ns::f<int>\",le=\"+Inf\"} 4");
  has("_count{function=\"ns::f<int>\"} 4");
  CHECK(text.find("batchrpc_batch_size_rows_bucket{batcher=\"select_action\",le=\"64\"} 3\n") !=
        std::string::npos);
  CHECK(text.find("batchrpc_batch_size_rows_bucket{batcher=\"select_action\",le=\"128\"} 4\n") !=
        std::string::npos);
  for (const std::string& line : lines_of(text)) {
    if (!line.starts_with(name + "_sum{function=\"ns::f<int>\"}")) continue;
    CHECK(std::stod(line.substr(line.find(' '))) == Approx(200.003002));
  }
}

TEST_CASE("labels for Prometheus are escaped") {
  const std::string text = to_prometheus(some_metrics());
  CHECK(text.find("{peer=\"peer\\\\1\\n\",function=\"ns::f<int>\"}") != std::string::npos);
  CHECK(text.find("{function=\"only \\\"called\\\"\"") != std::string::npos);
}

TEST_CASE("promtool has nothing against the text for Prometheus") {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) {  // NOLINT: of this test alone
    WARN("left out: promtool (Debian's package prometheus) is missing");
    return;
  }
  std::string path = "/tmp/batchrpc-metrics-XXXXXX";
  const int file = ::mkstemp(path.data());
  REQUIRE(file >= 0);
  ::close(file);
  std::ofstream(path) << to_prometheus(some_metrics());
  std::array<char, 4096> buffer{};
  std::string said;
  const std::string command = "promtool check metrics < " + path + " 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    said.append(buffer.data(), count);
  const int status = ::pclose(pipe);
  std::remove(path.c_str());
  INFO(said);
  CHECK(status == 0);
  CHECK(said.empty());
}

}  // namespace node_metrics_test
}  // namespace batchrpc
