#include "profile_example/options.hpp"

#include <CLI/App.hpp>
#include <filesystem>

#include "common/command_line.hpp"

namespace batchrpc_examples {

std::optional<ProfileExampleOptions> parse_profile_options(int argc, const char* const* argv) {
  ProfileExampleOptions options;
  const auto parser = make_parser(
      "Profiles calls between three processes: built-in operators, a function of the program, "
      "and the effect of the number of worker threads on four concurrent calls. Prints tables, "
      "and writes traces for https://ui.perfetto.dev.",
      "profile_example");
  CLI::App& app = *parser;
  app.add_option("--output-dir", options.output_dir, "Folder for the traces; it is created")
      ->capture_default_str();
  app.add_option("--calls", options.calls, "Concurrent calls to each worker")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--waiting-ms", options.waiting_ms, "Milliseconds that the waiting function waits")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();
  app.add_option("--rank", options.rank)->group("");
  app.add_option("--meeting-place", options.meeting_place)->group("");
  app.add_option("--worker-threads", options.worker_threads)->group("");
  const auto check = [&] {
    if (options.rank != 0) return;
    std::error_code error;
    std::filesystem::create_directories(options.output_dir, error);
    if (error) throw UsageError("--output-dir: '" + options.output_dir + "': " + error.message());
    check_writable("--output-dir", options.output_dir + "/operators.trace.json");
  };
  if (!parse_command_line(app, argc, argv, check)) return std::nullopt;
  return options;
}

}  // namespace batchrpc_examples
