#include "policy_benchmark/options.hpp"

#include <CLI/App.hpp>
#include <filesystem>
#include <regex>

#include "common/command_line.hpp"
#include "common/option_checks.hpp"
#include "policy_benchmark/forms.hpp"

namespace policy_benchmark {

namespace {

using batchrpc_examples::between;
using batchrpc_examples::UsageError;

std::string is_device(const std::string& text) {
  static const std::regex kDevices("cpu|cuda(:[0-9]{1,2})?");
  return std::regex_match(text, kDevices) ? "" : text + " is not one of cpu, cuda and cuda:N";
}

void add_options(CLI::App& app, Options& options) {
  const auto list = [&](const char* name, auto& values, const char* text) {
    return app.add_option(name, values, text)->delimiter(',')->allow_extra_args(false);
  };
  app.set_help_flag("-h,--help", "Print this help and exit");
  list("--network", options.networks, "atari, mlp (both)")->check(CLI::IsMember({"atari", "mlp"}));
  app.add_option(
      "--policies", options.policies,
      "Folder with one folder per network, as scripts/export_policy.py writes it; without "
      "it only eager and TorchScript made by this program");
  list("--form", options.forms, "eager, script, script-updatable, frozen, dynamic, updatable (all)")
      ->check(CLI::IsMember(form_names()));
  list("--batch", options.batches, "Rows of a forward pass (1,4,16,64)")->check(between(1, 4096));
  list("--threads", options.threads, "Threads of LibTorch (1)")->check(between(1, 256));
  app.add_option("--device", options.device, "Where policies run: cpu, cuda or cuda:N")
      ->check(is_device)
      ->capture_default_str();
  app.add_flag("--cuda-graphs", options.cuda_graphs, "Replay recorded CUDA graphs, on a GPU");
  app.add_option("--clients", options.clients,
                 "Processes that call the served policy in closed loops; 0: do not serve")
      ->check(between(0, 64))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Samples per figure")
      ->check(between(1, 1000))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "Seconds per sample")
      ->check(between(0.01, 600.0))
      ->capture_default_str();
  app.add_option("--json", options.json,
                 "Write the figures to this file; -: to standard output, and tables to standard "
                 "error");
  // For a client's process.
  app.add_option("--join", options.join)->group("");
  app.add_option("--index", options.index)->group("");
}

void check(const Options& options) {
  if (options.index >= 0) return;
  if (!options.json.empty() && options.json != "-") {
    batchrpc_examples::check_writable("--json", options.json);
  }
  if (options.cuda_graphs && options.device == "cpu") {
    throw UsageError("--cuda-graphs needs a GPU: give --device cuda");
  }
  if (options.policies.empty()) {
    for (const std::string& form : options.forms) {
      if (!is_compiled(form)) continue;
      throw UsageError("--form: " + form +
                       " is a compiled package, which needs --policies FOLDER; " +
                       "scripts/export_policy.py writes it");
    }
    return;
  }
  for (const std::string& network : options.networks) {
    const auto folder = std::filesystem::path(options.policies) / network;
    if (std::filesystem::exists(folder / "script.pt")) continue;  // the other forms come with it
    throw UsageError("--policies: there is no " + (folder / "script.pt").string() +
                     "; make it by scripts/export_policy.py " + network + " " + folder.string());
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv) {
  const auto parser = batchrpc_examples::make_parser(
      "Measures policies: forward passes per second of each form compared with the eager one, and "
      "the same when the library serves them to other processes.",
      "policy_benchmark");
  CLI::App& app = *parser;
  Options options;
  add_options(app, options);
  const bool go_on =
      batchrpc_examples::parse_command_line(app, argc, argv, [&] { check(options); });
  if (!go_on) return std::nullopt;
  return options;
}

std::vector<std::string> client_arguments(const std::string& join, int index) {
  return {"--join", join, "--index", std::to_string(index)};
}

}  // namespace policy_benchmark
