#include <CLI/App.hpp>

#include "cartpole_observer/group_options.hpp"
#include "cartpole_observer/observer_process.hpp"
#include "common/command_line.hpp"

namespace {

using namespace batchrpc_examples;

int run_with(int argc, const char* const* argv) {
  const auto parser = make_parser(
      "One observer of a CartPole run whose agent is `cartpole`: the same as `cartpole "
      "--rank` with a rank above 0, but without LibTorch, which takes longer to load than all "
      "else here.");
  CLI::App& app = *parser;
  GroupOptions options;
  add_group_options(app, options);
  const bool run = parse_command_line(app, argc, argv, [&] {
    complete(options);
    if (options.rank.value_or(0) > 0) return;
    throw UsageError("an observer needs a --rank above 0; to start all processes use `cartpole`");
  });
  return run ? run_observer(options) : 0;
}

}  // namespace

int main(int argc, char** argv) { return run_program("cartpole_observer", &run_with, argc, argv); }
