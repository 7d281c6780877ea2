#include "batch_benchmark/options.hpp"

#include <CLI/App.hpp>
#include <filesystem>
#include <map>
#include <numeric>

#include "batch_benchmark/sections.hpp"
#include "common/command_line.hpp"
#include "common/option_checks.hpp"

namespace batch_benchmark {

namespace {

using batchrpc_examples::between;
using batchrpc_examples::one_of;
using batchrpc_examples::TransportChoice;
using batchrpc_examples::UsageError;

constexpr int kMostObservers = 64;

const std::map<std::string, TransportChoice> kTransports{{"tcp", TransportChoice::tcp},
                                                         {"unix", TransportChoice::unix_socket}};
const std::map<std::string, Work> kWorks{{"sleep", Work::sleep}, {"spin", Work::spin}};

struct Texts {
  std::vector<std::string> batchers{};
};

std::string section_names() {
  std::string names;
  for (const Section& section : sections())
    names += (names.empty() ? "" : ", ") + section.name;
  return names;
}

void add_options(CLI::App& app, Options& options, Texts& texts) {
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.add_option("section", options.sections, section_names() + " (default: all except peer)");
  app.add_option("--rounds", options.rounds, "Samples per figure")
      ->check(between(1, 1000))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "Seconds per sample (0.2; for peer 5)")
      ->check(between(0.01, 600.0));
  app.add_option("--warm-up", options.warm_up,
                 "Warm-up seconds before a sample with processes (0.1; for peer 1)")
      ->check(between(0.0, 60.0));
  app.add_option("--json", options.json,
                 "Write the figures to this file; -: to standard output, and tables to standard "
                 "error");
  app.add_option("--observers", options.observers, "Numbers of concurrent callers (1,2,...,16)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(between(1, kMostObservers));
  app.add_option("--transport", options.transport, "Transport of calls between processes")
      ->transform(one_of(kTransports))
      ->default_str("unix");
  app.add_option("--batcher", texts.batchers, "Settings of the batchers in remote, such as idle")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("idle,all-of");
  app.add_option("--callers", options.callers, "Of peer: processes that call")
      ->check(between(1, kMostObservers))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "For peer: largest batch, in rows")
      ->check(between(1, 4096))
      ->capture_default_str();
  app.add_flag("--grad", options.grad, "For peer: track gradients");
  app.add_option("--work", options.work, "For adaptive: how its handler spends its time")
      ->transform(one_of(kWorks))
      ->default_str("sleep");
  app.add_option("--latency-target", options.latency_target_ms,
                 "For adaptive: target for the p99, in ms")
      ->check(between(0.1, 1000.0))
      ->capture_default_str();
  app.add_option("--figures", options.figures, "For sweeps: folder for figures");
  // For an observer's process.
  app.add_option("--join", options.join)->group("");
  app.add_option("--index", options.index)->group("");
}

void fill_in(const CLI::App& app, const Texts& texts, Options& options) {
  for (const std::string& name : options.sections)
    (void)section_of(name);
  if (options.sections.empty()) {
    for (const Section& section : sections()) {
      if (section.by_default) options.sections.push_back(section.name);
    }
  }
  for (const std::string& name : texts.batchers)
    options.batchers.emplace_back(name);
  if (options.batchers.empty()) options.batchers = {Setting("idle"), Setting("all-of")};
  if (options.observers.empty()) {
    options.observers.resize(16);
    std::iota(options.observers.begin(), options.observers.end(), 1);
  }
  if (options.alone("peer")) {
    if (app.count("--seconds") == 0) options.seconds = 5;
    if (app.count("--warm-up") == 0) options.warm_up = 1;
  }
  if (options.index >= 0) return;
  if (!options.json.empty() && options.json != "-") {
    batchrpc_examples::check_writable("--json", options.json);
  }
  if (!options.figures.empty() && !std::filesystem::is_directory(options.figures)) {
    throw UsageError("--figures: " + options.figures + " is not a folder");
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv) {
  const auto parser = batchrpc_examples::make_parser(
      "Measures the cost and the gain of batching, with various settings. Each section prints its "
      "own table.",
      "batch_benchmark");
  CLI::App& app = *parser;
  Options options;
  Texts texts;
  add_options(app, options, texts);
  const bool go_on =
      batchrpc_examples::parse_command_line(app, argc, argv, [&] { fill_in(app, texts, options); });
  if (!go_on) return std::nullopt;
  return options;
}

std::vector<std::string> observer_arguments(const std::string& join, int index,
                                            TransportChoice transport) {
  return {"--join",      join,
          "--index",     std::to_string(index),
          "--transport", transport == TransportChoice::tcp ? "tcp" : "unix"};
}

}  // namespace batch_benchmark
