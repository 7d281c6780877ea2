// Measures small calls next to a large payload on one connection: how long a call of 1 KiB takes
// while 1 GiB is being sent. It needs a link that is slower than memory; run.sh makes one.
#include <CLI/App.hpp>
#include <algorithm>
#include <batchrpc/batchrpc.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "common/command_line.hpp"
#include "common/machine.hpp"
#include "common/option_checks.hpp"
#include "common/statistics.hpp"

namespace rpc = batchrpc;
using Clock = std::chrono::steady_clock;

std::vector<std::byte> echo_small(std::vector<std::byte> payload) { return payload; }

std::uint64_t take_large(const rpc::Bytes& payload) { return payload.size(); }

namespace {

using namespace batchrpc_examples;

constexpr const char* kServer = "server";
constexpr std::size_t kSmall = 1024;

struct Options {
  std::string serve;
  std::string call;
  std::uint64_t mebibytes = 1024;
  std::string json;
};

rpc::NodeOptions node_options(const std::string& address) {
  rpc::NodeOptions options;
  options.join = address;
  options.transports = {rpc::tcp_transport()};
  options.limits.max_outstanding_bytes = std::uint64_t{8}
                                         << 30;  // the payload is not all that is unfinished
  return options;
}

int serve(const Options& options) {
  const batchrpc::InterruptFlag interrupts;
  rpc::NodeOptions how = node_options(options.serve);
  how.name = kServer;
  const rpc::Node node(how);
  node.expose<&echo_small>({.short_handler = true});
  node.expose<&take_large>();
  std::cout << "serving" << std::endl;
  while (!interrupts.is_set())
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return 0;
}

/// Makes small calls, one at a time, while `more()` is true. Returns the round trips in
/// microseconds.
template <class More>
std::vector<double> time_calls(const rpc::Node& node, const More& more) {
  const std::vector<std::byte> payload(kSmall);
  std::vector<double> times;
  while (more()) {
    const auto begin = Clock::now();
    node.call<&echo_small>(kServer, payload).get();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return times;
}

nlohmann::json summary(const std::vector<double>& times) {
  const auto values = percentiles(times, {50, 99, 100});
  return {
      {"calls", times.size()}, {"p50_us", values[0]}, {"p99_us", values[1]}, {"max_us", values[2]}};
}

int call(const Options& options) {
  const batchrpc::InterruptFlag interrupts;
  rpc::NodeOptions how = node_options(options.call);
  how.name = "client";
  how.rank = -1;
  how.call_timeout = rpc::kNoTimeout;
  const rpc::Node node(how);
  node.wait_for_peer(kServer, std::chrono::seconds(10)).get();

  int left = 200;
  time_calls(node, [&] { return left-- > 0; });
  left = 1000;
  const std::vector<double> alone = time_calls(node, [&] { return left-- > 0; });

  const rpc::Bytes large = rpc::Bytes::allocate(options.mebibytes << 20);
  std::memset(large.mutable_data(), 1, large.size());
  const auto begin = Clock::now();
  auto taken = node.call<&take_large>(kServer, large);
  const std::vector<double> beside =
      time_calls(node, [&] { return !taken.ready() && !interrupts.is_set(); });
  interrupts.check();
  if (taken.get() != large.size()) throw std::runtime_error("the payload was truncated");
  const std::chrono::duration<double> seconds = Clock::now() - begin;

  const nlohmann::json report{
      {"system", "batchrpc"},
      {"small_bytes", kSmall},
      {"large_bytes", large.size()},
      {"large_gb_per_s", static_cast<double>(large.size()) / seconds.count() * 1e-9},
      {"alone", summary(alone)},
      {"beside", summary(beside)},
      {"machine", machine_report()}};
  std::cout << std::fixed << std::setprecision(0);
  for (const char* when : {"alone", "beside"}) {
    const nlohmann::json& row = report.at(when);
    std::cout << std::setw(6) << when << ": " << row.at("calls") << " calls of 1 KiB, p50 "
              << row.at("p50_us").get<double>() << " us, p99 " << row.at("p99_us").get<double>()
              << " us, longest " << row.at("max_us").get<double>() << " us\n";
  }
  std::cout << std::setprecision(3) << options.mebibytes << " MiB at "
            << report.at("large_gb_per_s").get<double>() << " GB/s" << std::endl;
  if (!options.json.empty()) write_file(options.json, report.dump(2) + "\n");
  return 0;
}

int run(int argc, const char* const* argv) {
  const auto parser = make_parser(
      "Times calls of 1 KiB while a large payload is being sent over the same connection.");
  CLI::App& app = *parser;
  Options options;
  auto* const serve_option =
      app.add_option("--serve", options.serve, "run the server at tcp://host:port");
  app.add_option("--call", options.call, "run the client of the server at this address")
      ->excludes(serve_option);
  app.add_option("--mebibytes", options.mebibytes, "size of the payload")
      ->check(between(std::uint64_t{1}, std::uint64_t{4095}))
      ->capture_default_str();
  app.add_option("--json", options.json, "file for the client's report");
  const bool go = parse_command_line(app, argc, argv, [&] {
    if (options.serve.empty() && options.call.empty()) throw UsageError("give --serve or --call");
    if (!options.json.empty()) check_writable("--json", options.json);
  });
  if (!go) return 0;
  return options.serve.empty() ? call(options) : serve(options);
}

}  // namespace

int main(int argc, char** argv) { return run_program("shared_link", &run, argc, argv); }
