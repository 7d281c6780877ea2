#include "parameter_server/options.hpp"

#include <torch/cuda.h>

#include <CLI/App.hpp>
#include <array>
#include <batchrpc/transport/tcp_address.hpp>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>
#include <system_error>

#include "common/command_line.hpp"
#include "common/counted.hpp"
#include "common/meeting_place.hpp"
#include "common/option_checks.hpp"

namespace batchrpc_examples {
namespace {

const std::map<std::string, UpdateMode> kModes{
    {"batch", UpdateMode::batch}, {"sync", UpdateMode::sync}, {"async", UpdateMode::async}};
const std::map<std::string, bool> kDevices{{"cpu", false}, {"cuda", true}};

std::string in_environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

int number_in_environment(const char* name) {
  const std::string text = in_environment(name);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw UsageError(std::string("the environment variable ") + name + " is not a number: " + text);
  }
  return value;
}

/// The shortest text that reads back as `number`.
std::string shortest(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

void take_environment(const CLI::App& app, ParameterServerOptions& options) {
  std::string missing;
  int there = 0;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"}) {
    if (!in_environment(name).empty()) {
      ++there;
    } else {
      missing += (missing.empty() ? "" : ", ") + std::string(name);
    }
  }
  if (there == 0) return;
  if (!missing.empty()) {
    throw UsageError(
        "to run one process of several, set MASTER_ADDR, MASTER_PORT, RANK and "
        "WORLD_SIZE in the environment; missing: " +
        missing);
  }
  options.rank = number_in_environment("RANK");
  const int trainers = number_in_environment("WORLD_SIZE") - options.servers;
  if (app.count("--trainers") > 0 && trainers != options.trainers) {
    throw UsageError("--trainers " + std::to_string(options.trainers) +
                     ": with WORLD_SIZE in the environment and " + std::to_string(options.servers) +
                     " of --servers, there must be " + std::to_string(trainers));
  }
  if (trainers < 1) {
    throw UsageError("WORLD_SIZE in the environment is " + in_environment("WORLD_SIZE") +
                     ": there "
                     "must be a trainer besides " +
                     std::to_string(options.servers) + " of --servers");
  }
  options.trainers = trainers;
  const int port = number_in_environment("MASTER_PORT");
  if (port < 1 || port > 65535) {
    throw UsageError("the environment variable MASTER_PORT is not a port: " + std::to_string(port));
  }
  options.join = batchrpc::TcpAddress{.host = in_environment("MASTER_ADDR"),
                                      .port = static_cast<std::uint16_t>(port)}
                     .to_string();
}

void add_training_options(CLI::App& app, ParameterServerOptions& options) {
  const auto number = [&](const char* name, int& value, int low, int high, const char* what) {
    app.add_option(name, value, what)->check(between(low, high))->capture_default_str();
  };
  number("--trainers", options.trainers, 1, ParameterServerOptions::kMostProcesses,
         "trainers that start together");
  number("--servers", options.servers, 1, ParameterServerOptions::kMostProcesses,
         "server processes that share the model");
  number("--iterations", options.iterations, 1, 1'000'000, "updates of the model");
  number("--batch-size", options.batch_size, 1, 10'000, "images per trainer and iteration");
  number("--image", options.image, 1, 4096, "width and height of an image in pixels");
  number("--classes", options.classes, 1, 100'000, "classes that the model distinguishes");
  app.add_option("--lr", options.learning_rate, "learning rate of SGD")
      ->check(between(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--momentum", options.momentum, "momentum of SGD")
      ->check(between(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--seed", options.seed,
                 "seed of the weights and (with its index) of a trainer's images")
      ->check(between(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
}

void add_traffic_options(CLI::App& app, ParameterServerOptions& options, bool& no_sum) {
  app.add_option("--mode", options.mode,
                 "apply the mean of all gradients in one batch (batch), the same with one call per "
                 "trainer (sync), or each gradient on arrival (async)")
      ->transform(one_of(kModes))
      ->default_str("batch");
  app.add_option("--transport", options.transport,
                 "auto (Unix sockets between processes of one host), tcp or unix")
      ->transform(one_of(transports()))
      ->default_str("auto");
  app.add_option("--device", options.cuda, "where trainers compute")
      ->transform(one_of(kDevices))
      ->type_name("ENUM")
      ->default_str("cpu");
  app.add_flag("--synthetic", options.synthetic,
               "no computation: only traffic and summing; the model does not change");
  app.add_flag("--no-sum", no_sum, "with --synthetic: traffic only");
  app.add_flag("--refuse-nan", options.refuse_nan, "fail calls with a gradient of NaN or infinity");
  app.add_flag("--buffers", options.buffers,
               "send the buffers of batch norm with the model; the server does not change them; "
               "else each trainer has its own");
  app.add_flag("--check", options.check,
               "add gradients in the order of ranks, and at the end compare the model with that of "
               "one process that averages the same gradients");
}

void check_folder(const ParameterServerOptions& options) {
  if (!std::filesystem::is_directory(options.checkpoint)) {
    throw UsageError("--checkpoint " + options.checkpoint + ": there is no such folder");
  }
  const std::string server = server_name(options.rank.value_or(0));
  check_writable("--checkpoint", options.checkpoint + "/" + server + ".writable");
}

std::filesystem::path resolved(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path), error);
  return error ? std::filesystem::absolute(path).lexically_normal() : whole;
}

void check_different_files(const ParameterServerOptions& options) {
  if (options.json.empty() || options.figure.empty()) return;
  for (const std::string& drawn : {options.figure, png_beside(options.figure)}) {
    if (resolved(options.json) == resolved(drawn)) {
      throw UsageError("--json " + options.json + ": --figure writes to the same file");
    }
  }
}

void check_together(const CLI::App& app, const ParameterServerOptions& options, bool no_sum) {
  if (no_sum && !options.synthetic) throw UsageError("--no-sum needs --synthetic");
  if (options.check && options.synthetic) {
    throw UsageError("--check and --synthetic cannot be combined");
  }
  if (options.check && options.mode != UpdateMode::batch) {
    throw UsageError("--check needs --mode batch: other modes add gradients as they arrive");
  }
  if (!options.synthetic && options.batch_size == 1 && options.image <= 32) {
    throw UsageError(
        "--batch-size 1 --image " + std::to_string(options.image) +
        ": batch norm needs more than one value per channel: use two images, or one of "
        "more than 32 pixels");
  }
  if (options.cuda && !torch::cuda::is_available()) {
    throw UsageError("--device cuda: LibTorch finds no CUDA device here");
  }
  if (app.count("--checkpoint-every") > 0 && options.checkpoint.empty()) {
    throw UsageError("--checkpoint-every needs --checkpoint");
  }
  if (!options.figure.empty() && !options.figure.ends_with(".svg")) {
    throw UsageError("--figure " + options.figure +
                     ": give a file name that ends in .svg; a .png is written next to it");
  }
  check_different_files(options);
  if (options.synthetic && !options.checkpoint.empty()) {
    throw UsageError("--checkpoint and --synthetic cannot be combined: the model does not change");
  }
  if (options.is_server() && !options.checkpoint.empty()) check_folder(options);
  if (options.rank.value_or(0) != 0) return;  // server 0 writes the files
  if (!options.json.empty()) check_writable("--json", options.json);
  if (!options.figure.empty()) {
    check_writable("--figure", options.figure);
    check_writable("--figure", png_beside(options.figure));
  }
}

}  // namespace

std::optional<ParameterServerOptions> parse_parameter_server_options(int argc,
                                                                     const char* const* argv) {
  const auto parser = make_parser(
      "Trains a ResNet-50 with a parameter server and many trainers, each in its own process. In "
      "every iteration each trainer sends all gradients to the server and gets the updated model "
      "as the answer. Follows the batch RPC tutorial of PyTorch. With MASTER_ADDR, MASTER_PORT, "
      "RANK and WORLD_SIZE in the environment it is one process of several: servers first, then "
      "trainers; a RANK from WORLD_SIZE on is an additional trainer. Otherwise it starts all of "
      "them.");
  CLI::App& app = *parser;
  ParameterServerOptions options;
  bool no_sum = false;
  add_training_options(app, options);
  add_traffic_options(app, options, no_sum);
  app.add_option(
      "--checkpoint", options.checkpoint,
      "an existing folder to which the servers write the model, and from which they continue");
  app.add_option("--checkpoint-every", options.checkpoint_every, "iterations")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--json", options.json, "write a report to this file");
  app.add_option("--figure", options.figure,
                 "write the times of the iterations, by phase, to this .svg file and a .png");
  app.add_flag("--quiet", options.quiet, "print no line for each iteration");
  app.add_flag("--launched", options.launched)->group("");  // these options are hidden
  app.add_option("--rank", options.rank)->group("");
  app.add_option("--join", options.join)->group("");
  const bool run = parse_command_line(app, argc, argv, [&] {
    if (!options.launched) take_environment(app, options);
    options.sum = !no_sum;
    check_together(app, options, no_sum);
  });
  return run ? std::optional(options) : std::nullopt;
}

std::string png_beside(const std::string& svg) {
  return std::filesystem::path(svg).replace_extension(".png");
}

std::string server_name(int index) { return "server" + std::to_string(index); }
std::string trainer_name(int index) { return "trainer" + std::to_string(index); }

std::string to_string(UpdateMode mode) {
  for (const auto& [word, value] : kModes) {
    if (value == mode) return word;
  }
  return {};
}

batchrpc::NodeOptions node_options(const ParameterServerOptions& options) {
  const int rank = options.rank.value();
  batchrpc::NodeOptions node;
  node.name = options.is_server() ? server_name(rank) : trainer_name(options.trainer_index());
  node.rank = rank;
  node.join = options.join;
  node.transports = transports_of(options.transport, node.join);
  node.call_timeout = batchrpc::kNoTimeout;        // an iteration takes what it takes
  node.logging.level = batchrpc::LogLevel::error;  // the program tells of losses itself
  node.expose_within = std::chrono::seconds(60);   // servers agree on a checkpoint first
  return node;
}

std::string model_settings(const ParameterServerOptions& options) {
  std::ostringstream text;
  text << "ResNet-50 of " << options.classes << " classes, seed " << options.seed << ", lr "
       << shortest(options.learning_rate) << ", momentum " << shortest(options.momentum)
       << ", mode " << to_string(options.mode) << ", part " << options.rank.value_or(0) << " of "
       << options.servers << (options.buffers ? ", with buffers" : "");
  return text.str();
}

std::string gradient_settings(const ParameterServerOptions& options) {
  std::ostringstream text;
  text << counted(options.trainers, "trainer") << ", each with "
       << counted(options.batch_size, "image") << " of " << counted(options.image, "pixel")
       << ", computed by " << (options.cuda ? "CUDA" : "the CPU");
  return text.str();
}

}  // namespace batchrpc_examples
