#include "soak/options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "common/command_line.hpp"
#include "common/option_checks.hpp"

namespace soak {

namespace {

constexpr auto kAbout =
    "An agent and ten observers, processes of their own, call each other while these are killed, "
    "stopped and cut off. Ends with 1 when a promise of docs/reliability.md was broken.";

const std::map<std::string, Role> kRoles{{"conductor", Role::conductor},
                                         {"root", Role::root},
                                         {"agent", Role::agent},
                                         {"observer", Role::observer}};

}  // namespace

bool parse_options(Options& options, int argc, const char* const* argv) {
  CLI::App app(kAbout, "soak");
  app.set_help_flag("-h,--help", "Print this and end");
  app.add_option("--seconds", options.seconds, "How long (120)")
      ->check(batchrpc_examples::between(20, 1'000'000));
  app.add_option("--seed", options.seed, "Of faults and calls (1)")
      ->check(
          batchrpc_examples::between(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()));
  app.add_flag("--calm", options.calm, "No faults: nothing may fail");
  app.add_option("--logs", options.logs,
                 "A folder for all that each node logs, NAME.LIFE.log (none)")
      ->check(CLI::ExistingDirectory);
  // For children only.
  app.add_option("--role", options.role)->transform(batchrpc_examples::one_of(kRoles))->group("");
  app.add_option("--index", options.index)->group("");
  app.add_option("--life", options.life)->group("");
  app.add_option("--link", options.link)->group("");
  app.add_option("--address", options.address)->group("");
  app.add_option("--folder", options.folder)->group("");
  return batchrpc_examples::parse_command_line(app, argc, argv, [] {});
}

std::vector<std::string> child_arguments(const Options& options) {
  std::string role;
  for (const auto& [name, value] : kRoles) {
    if (value == options.role) role = name;
  }
  std::vector<std::string> arguments{"--role",    role,
                                     "--index",   std::to_string(options.index),
                                     "--life",    std::to_string(options.life),
                                     "--seed",    std::to_string(options.seed),
                                     "--link",    std::to_string(options.link),
                                     "--address", options.address,
                                     "--folder",  options.folder};
  if (!options.logs.empty()) arguments.insert(arguments.end(), {"--logs", options.logs});
  return arguments;
}

std::string name_of(Role role, std::uint32_t index) {
  if (role == Role::root) return "root";
  if (role == Role::agent) return "agent";
  return "observer" + std::to_string(index);
}

}  // namespace soak
