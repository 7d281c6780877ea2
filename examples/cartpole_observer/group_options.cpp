#include "cartpole_observer/group_options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <string_view>

#include "common/command_line.hpp"
#include "common/option_checks.hpp"

namespace batchrpc_examples {
namespace {

using batchrpc::TransportChoice;

constexpr const char* kByEnvironment = "env://";

const std::map<std::string, TransportChoice>& transports() {
  static const std::map<std::string, TransportChoice> kTransports{
      {"auto", TransportChoice::automatic},
      {"tcp", TransportChoice::tcp},
      {"unix", TransportChoice::unix_socket}};
  return kTransports;
}

std::optional<int> number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const std::string_view view(text);
  int value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size()) {
    throw UsageError(std::string("the environment variable ") + name + " is no number: " + text);
  }
  return value;
}

void take_environment(GroupOptions& options) {
  struct Launcher {
    const char* rank;
    const char* world_size;
  };
  for (const Launcher& launcher : {Launcher{"RANK", "WORLD_SIZE"},
                                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE"}}) {
    const auto rank = number_in_environment(launcher.rank);
    const auto world_size = number_in_environment(launcher.world_size);
    if (!rank || !world_size) continue;
    const bool has_address =
        std::getenv("MASTER_ADDR") != nullptr && std::getenv("MASTER_PORT") != nullptr;
    if (options.join.empty() && has_address && launcher.rank == std::string_view("RANK")) {
      options.join = kByEnvironment;
    }
    if (options.join.empty()) continue;
    options.rank = rank;
    options.world_size = *world_size;
    return;
  }
}

}  // namespace

std::string observer_name(int rank) { return "observer" + std::to_string(rank); }

void add_group_options(CLI::App& app, GroupOptions& options) {
  app.add_option("--world-size", options.world_size, "processes: one agent, the rest observers")
      ->check(between(2, GroupOptions::kMostProcesses))
      ->capture_default_str();
  app.add_option("--rank", options.rank,
                 "be one process of a run: 0 the agent, else an observer; without it, and without "
                 "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment (torchrun), "
                 "start all of them")
      ->check(between(0, GroupOptions::kMostProcesses - 1));
  app.add_option("--join", options.join,
                 "with --rank: the address at which rank 0 listens, such as tcp://127.0.0.1:29500");
  app.add_option("--transport", options.transport,
                 "auto (Unix sockets between processes of one host), tcp or unix")
      ->transform(one_of(transports()))
      ->default_str("auto");
  app.add_option("--seed", options.seed, "of the weights, the actions and (plus rank) environments")
      ->check(between(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  app.add_option("--gamma", options.gamma, "discount of later rewards")
      ->check(between(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--launched", options.launched)->group("");  // hidden
}

void complete(GroupOptions& options) {
  if (!options.rank) take_environment(options);
  if (options.rank && options.join.empty()) {
    throw UsageError("--rank needs --join, the address at which rank 0 listens");
  }
  if (!options.rank && !options.join.empty()) {
    throw UsageError("--join needs --rank: which process of the run this is");
  }
  if (options.world_size < 2 || options.world_size > GroupOptions::kMostProcesses) {
    throw UsageError("a world of " + std::to_string(options.world_size) +
                     ": there must be an agent and an observer, and at most " +
                     std::to_string(GroupOptions::kMostProcesses) + " processes");
  }
  if (options.rank && (*options.rank < 0 || *options.rank >= options.world_size)) {
    throw UsageError("--rank " + std::to_string(*options.rank) + " is not in a world of " +
                     std::to_string(options.world_size) + ", where ranks are 0 to " +
                     std::to_string(options.world_size - 1));
  }
}

batchrpc::NodeOptions node_options(const GroupOptions& options) {
  const int rank = options.rank.value();
  batchrpc::NodeOptions node;
  node.name = rank == 0 ? kAgentName : observer_name(rank);
  node.rank = rank;
  node.world_size = options.world_size;
  node.join = options.join;
  node.transport = options.transport;
  node.log_level = batchrpc::LogLevel::error;  // the programs tell of losses themselves
  return node;
}

std::vector<std::string> observer_arguments(const GroupOptions& options, int rank) {
  std::string transport;
  for (const auto& [name, choice] : transports()) {
    if (choice == options.transport) transport = name;
  }
  std::array<char, 32> gamma{};
  const auto end = std::to_chars(gamma.data(), gamma.data() + gamma.size(), options.gamma).ptr;
  return {"--launched",
          "--rank",
          std::to_string(rank),
          "--world-size",
          std::to_string(options.world_size),
          "--join",
          options.join,
          "--transport",
          transport,
          "--seed",
          std::to_string(options.seed),
          "--gamma",
          std::string(gamma.data(), end)};
}

}  // namespace batchrpc_examples
