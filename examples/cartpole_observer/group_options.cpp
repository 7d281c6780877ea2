#include "cartpole_observer/group_options.hpp"

#include <CLI/App.hpp>
#include <array>
#include <batchrpc/base/error.hpp>
#include <batchrpc/transport/tcp_address.hpp>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "common/command_line.hpp"
#include "common/meeting_place.hpp"
#include "common/option_checks.hpp"

namespace batchrpc_examples {
namespace {

constexpr const char* kByEnvironment = "env://";

// Returns an empty text if the variable is not set.
std::string text_in_environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::optional<int> number_in_environment(const char* name) {
  const std::string text = text_in_environment(name);
  if (text.empty()) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw UsageError(std::string("the environment variable ") + name + " is not a number: " + text);
  }
  return value;
}

struct Launcher {
  const char* rank;
  const char* world_size;
  bool tells_address;
};
constexpr std::array kLaunchers{Launcher{"RANK", "WORLD_SIZE", true},
                                Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", false},
                                Launcher{"PMI_RANK", "PMI_SIZE", false}};

// The name of a missing address setting; empty if nothing is missing.
std::string missing_address(const Launcher& launcher) {
  if (!launcher.tells_address) return "--join";
  std::string missing;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    if (!text_in_environment(name).empty()) continue;
    missing += missing.empty() ? "--join, or in the environment " : " and ";
    missing += name;
  }
  return missing;
}

// Throws if a launcher has set only one of its variables. Called if no launcher has set both.
void refuse_half_a_launcher() {
  for (const Launcher& launcher : kLaunchers) {
    const bool rank = number_in_environment(launcher.rank).has_value();
    const bool world_size = number_in_environment(launcher.world_size).has_value();
    if (rank == world_size) continue;
    throw UsageError(std::string("the environment has ") +
                     (rank ? launcher.rank : launcher.world_size) + ", but no " +
                     (rank ? launcher.world_size : launcher.rank));
  }
}

// If the program ignored a launcher's variables, every process would start all the others.
void take_environment(GroupOptions& options) {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = number_in_environment(launcher.rank);
    const auto world_size = number_in_environment(launcher.world_size);
    if (!rank || !world_size) continue;
    if (options.join.empty()) {
      const std::string missing = missing_address(launcher);
      if (!missing.empty() && *world_size == 1) return;  // mpirun -n 1
      if (!missing.empty()) {
        throw UsageError(
            std::string("the variables ") + launcher.rank + " and " + launcher.world_size +
            " mark this as one of several processes, but the address of rank 0 is missing: " +
            missing);
      }
      options.join = kByEnvironment;
    }
    options.rank = rank;
    options.world_size = *world_size;
    return;
  }
  refuse_half_a_launcher();
}

// The address that the node makes from env://.
std::string address_in_environment() {
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"}) {
    if (text_in_environment(name).empty()) {
      throw UsageError(std::string("the environment variable ") + name + " is not set");
    }
  }
  const int port = number_in_environment("MASTER_PORT").value();
  if (port < 1 || port > 65535) {
    throw UsageError("the environment variable MASTER_PORT is not a port: " + std::to_string(port));
  }
  return batchrpc::TcpAddress{.host = text_in_environment("MASTER_ADDR"),
                              .port = static_cast<std::uint16_t>(port)}
      .to_string();
}

// Throws UsageError for addresses that the node would reject later.
void check_join(const GroupOptions& options) {
  if (options.join.starts_with("file:///")) return;
  const bool by_environment = options.join == kByEnvironment;
  const std::string text = by_environment ? address_in_environment() : options.join;
  try {
    const auto address = batchrpc::Address::parse(text);
    if (address.scheme() == "inproc") {
      throw UsageError("--join " + text +
                       ": the processes of a run cannot use an in-process address");
    }
    if (address.scheme() == "tcp") {
      if (batchrpc::TcpAddress::of(address).port == 0 && options.rank != 0) {
        throw UsageError(
            "--join " + text +
            ": with port 0, only rank 0 knows the port that it gets; use a fixed port");
      }
    } else if (!address.scheme().starts_with("unix")) {
      address.refuse("write tcp://host:port, unix:///path or unix-abstract:name");
    }
  } catch (const batchrpc::InvalidArgument& error) {
    throw UsageError((by_environment ? "MASTER_ADDR: " : "--join: ") + std::string(error.what()));
  }
}

}  // namespace

std::string observer_name(int rank) { return "observer" + std::to_string(rank); }

void add_group_options(CLI::App& app, GroupOptions& options) {
  app.add_option("--world-size", options.world_size, "processes: one agent, the rest observers")
      ->check(between(2, GroupOptions::kMostProcesses))
      ->capture_default_str();
  app.add_option("--rank", options.rank,
                 "run one process: the agent (0) or an observer; without it, and without "
                 "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment (torchrun), "
                 "all processes are started")
      ->check(between(0, GroupOptions::kMostProcesses - 1));
  app.add_option("--join", options.join,
                 "with --rank: the address where rank 0 listens, such as tcp://127.0.0.1:29500");
  app.add_option("--transport", options.transport,
                 "auto (Unix sockets between processes of one host), tcp or unix")
      ->transform(one_of(transports()))
      ->default_str("auto");
  app.add_option("--seed", options.seed,
                 "seed of the weights, the actions and (plus the rank) the environments")
      ->check(between(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  app.add_option("--gamma", options.gamma, "discount factor of later rewards")
      ->check(between(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--launched", options.launched)->group("");  // hidden
}

void complete(GroupOptions& options) {
  if (options.rank && options.join == kByEnvironment) {
    throw UsageError(
        "--rank and --join env:// cannot be combined: env:// takes the rank from RANK");
  }
  if (!options.rank) take_environment(options);
  if (options.rank && options.join.empty()) {
    throw UsageError("--rank needs --join, the address where rank 0 listens");
  }
  if (!options.rank && !options.join.empty()) {
    throw UsageError("--join needs --rank, the number of this process in the run");
  }
  if (options.rank) check_join(options);
  if (options.world_size < 2 || options.world_size > GroupOptions::kMostProcesses) {
    throw UsageError("--world-size " + std::to_string(options.world_size) +
                     ": a run needs an agent and an observer, and may have at most " +
                     std::to_string(GroupOptions::kMostProcesses) + " processes");
  }
  if (options.rank && (*options.rank < 0 || *options.rank >= options.world_size)) {
    throw UsageError("--rank " + std::to_string(*options.rank) +
                     " does not exist with --world-size " + std::to_string(options.world_size) +
                     ", where ranks are 0 to " + std::to_string(options.world_size - 1));
  }
}

batchrpc::NodeOptions node_options(const GroupOptions& options) {
  const int rank = options.rank.value();
  batchrpc::NodeOptions node;
  node.name = rank == 0 ? kAgentName : observer_name(rank);
  node.rank = rank;
  node.world_size = options.world_size;
  node.join = options.join;
  node.transports = transports_of(options.transport, node.join);
  node.logging.level = batchrpc::LogLevel::error;  // the programs tell of losses themselves
  return node;
}

std::vector<std::string> observer_arguments(const GroupOptions& options, int rank) {
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
          transport_word(options.transport),
          "--seed",
          std::to_string(options.seed),
          "--gamma",
          std::string(gamma.data(), end)};
}

}  // namespace batchrpc_examples
