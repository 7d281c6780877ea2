#include "cartpole/options.hpp"

#include <CLI/App.hpp>
#include <charconv>
#include <map>
#include <set>
#include <sstream>

#include "common/command_line.hpp"
#include "common/option_checks.hpp"

namespace batchrpc_examples {
namespace {

constexpr int kMostSteps = 1'000'000;
constexpr int kMostEpisodes = 1'000'000;

const std::map<std::string, ProgressMode> kProgressModes{{"auto", ProgressMode::automatic},
                                                         {"live", ProgressMode::live},
                                                         {"lines", ProgressMode::lines},
                                                         {"none", ProgressMode::none}};

int world_size_of(const std::string& text, const std::string& whole) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 2 ||
      value > GroupOptions::kMostProcesses) {
    throw UsageError("--sweep " + whole + ": give world sizes from 2 to " +
                     std::to_string(GroupOptions::kMostProcesses) +
                     ", as a range (2-11) or a list (2,5,8)");
  }
  return value;
}

void add_training_options(CLI::App& app, CartPoleOptions& options) {
  app.add_option("--batch", options.batch,
                 "infer once for all observers (true), or once for each (false)")
      ->default_str("true");
  app.add_option("--episodes", options.episodes, "episodes to train; each ends with an update")
      ->check(between(1, kMostEpisodes))
      ->capture_default_str();
  app.add_flag("--until-solved", options.until_solved,
               "train until CartPole-v1 is solved (the mean length of the last 100 runs is 475), "
               "regardless of --episodes");
  app.add_option("--episodes-max", options.most_episodes, "with --until-solved: give up after")
      ->check(between(1, kMostEpisodes))
      ->capture_default_str();
  app.add_option("--steps", options.steps, "steps of each observer per episode")
      ->check(between(1, kMostSteps))
      ->capture_default_str();
  app.add_option("--learning-rate", options.learning_rate, "learning rate of Adam")
      ->check(between(1e-9, 10.0))
      ->capture_default_str();
  app.add_option("--dropout", options.dropout, "dropout of the hidden layer (0.6 in the tutorial)")
      ->check(between(0.0, 0.99))
      ->capture_default_str();
  app.add_option("--normalize-returns", options.normalize_returns,
                 "to mean 0 and deviation 1 over an episode")
      ->default_str("true");
}

void check_sweep(const CLI::App& app) {
  if (app.count("--sweep") == 0) return;
  for (const char* other : {"--rank", "--join", "--world-size", "--batch", "--until-solved"}) {
    if (app.count(other) > 0) {
      throw UsageError(std::string("--sweep and ") + other + " cannot be combined");
    }
  }
}

void check_together(const CartPoleOptions& options) {
  if (!options.figure.empty() && !options.figure.ends_with(".svg")) {
    throw UsageError("--figure " + options.figure +
                     ": use a file name that ends in .svg; a .png is written next to it");
  }
  if (!options.sweep.empty() && options.group.rank) {
    throw UsageError(
        "--sweep starts all processes itself, but the environment marks this process as one of "
        "several");
  }
  if (options.group.rank.value_or(0) != 0) return;  // the agent writes the files
  if (!options.json.empty()) check_writable("--json", options.json);
  if (!options.figure.empty()) check_writable("--figure", options.figure);
}

}  // namespace

std::vector<int> parse_world_sizes(const std::string& text) {
  std::set<int> sizes;
  std::istringstream parts(text);
  std::string part;
  while (std::getline(parts, part, ',')) {
    const std::size_t dash = part.find('-');
    const int first = world_size_of(part.substr(0, dash), text);
    const int last = dash == std::string::npos ? first : world_size_of(part.substr(dash + 1), text);
    if (last < first) throw UsageError("--sweep " + text + ": " + part + " is an empty range");
    for (int size = first; size <= last; ++size)
      sizes.insert(size);
  }
  if (sizes.empty() || text.ends_with(',')) (void)world_size_of("", text);
  return {sizes.begin(), sizes.end()};
}

std::optional<CartPoleOptions> parse_options(int argc, const char* const* argv) {
  const auto parser = make_parser(
      "Trains a policy for CartPole-v1 with one agent and many observers, each in its own "
      "process. In every step each observer sends its state to the agent and waits for an action. "
      "Follows the batch RPC tutorial of PyTorch.");
  CLI::App& app = *parser;
  CartPoleOptions options;
  add_group_options(app, options.group);
  add_training_options(app, options);
  std::string sweep;
  app.add_option("--sweep", sweep,
                 "compare batch with no batch at these world sizes, such as 2-11 or 2,5,8");
  app.add_option("--progress", options.progress, "how to show the progress")
      ->transform(one_of(kProgressModes))
      ->default_str("auto");
  app.add_option(
      "--status", options.group.status,
      "serve the agent's status page at this address of loopback (127.0.0.1:8080; port 0: any)");
  app.add_option("--json", options.json, "write a report to this file");
  app.add_option("--figure", options.figure,
                 "write the learning curve, or the sweep's times, to this .svg file and a .png");
  const bool run = parse_command_line(app, argc, argv, [&] {
    check_sweep(app);
    if (app.count("--sweep") > 0) options.sweep = parse_world_sizes(sweep);
    complete(options.group);
    check_together(options);
  });
  return run ? std::optional(options) : std::nullopt;
}

}  // namespace batchrpc_examples
