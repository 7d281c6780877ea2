#include "soak/options.hpp"

#include <CLI/App.hpp>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "common/command_line.hpp"
#include "common/option_checks.hpp"

namespace soak {

namespace {

constexpr auto kAbout =
    "An agent and ten observers, each in its own process, call each other while observers are "
    "killed, stopped and cut off. Exits with 1 if a guarantee of docs/reliability.md was broken.";

const std::map<std::string, Role> kRoles{{"conductor", Role::conductor},
                                         {"root", Role::root},
                                         {"agent", Role::agent},
                                         {"observer", Role::observer}};

}  // namespace

bool parse_options(Options& options, int argc, const char* const* argv) {
  const auto parser = batchrpc_examples::make_parser(kAbout, "soak");
  CLI::App& app = *parser;
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.add_option("--seconds", options.seconds, "Duration in seconds (120)")
      ->check(batchrpc_examples::between(20, 1'000'000));
  app.add_option("--seed", options.seed, "Seed of faults and calls (1)")
      ->check(
          batchrpc_examples::between(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()));
  app.add_flag("--calm", options.calm, "No faults: nothing may fail");
  app.add_option("--logs", options.logs, "Folder for the nodes' full logs, NAME.LIFE.log (none)")
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
