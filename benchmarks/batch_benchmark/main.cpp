#include <iostream>
#include <nlohmann/json.hpp>

#include <batchrpc/base/interrupt.hpp>
#include "batch_benchmark/observers.hpp"
#include "batch_benchmark/options.hpp"
#include "batch_benchmark/report.hpp"
#include "batch_benchmark/sections.hpp"
#include "common/command_line.hpp"
#include "torch_settings/torch_settings.hpp"

namespace batch_benchmark {
namespace {

void write(const std::string& path, const nlohmann::json& report) {
  const std::string text = report.dump(1) + "\n";
  if (path == "-") {
    std::cout << text << std::flush;
  } else if (!path.empty()) {
    batchrpc_examples::write_file(path, text);
  }
}

int run(int argc, const char* const* argv) {
  const std::optional<Options> options = parse_options(argc, argv);
  if (!options) return 0;
  if (options->index >= 0) return run_observer(*options);

  batchrpc_examples::use_one_torch_thread();
  const batchrpc::InterruptFlag interrupts;
  const Run run{*options, options->json == "-" ? std::cerr : std::cout, interrupts};
  if (options->alone("peer")) {  // a comparison of peers needs only its keys
    write(options->json, measure_peer(run));
    return 0;
  }
  run.out << head(*options) << std::flush;
  nlohmann::json report{{"system", "batchrpc"},
                        {"machine", machine_json()},
                        {"versions", versions_json()},
                        {"settings", settings_json(*options)}};
  for (const std::string& name : options->sections)
    report[name] = section_of(name).measure(run);
  write(options->json, report);
  return 0;
}

}  // namespace
}  // namespace batch_benchmark

int main(int argc, char** argv) {
  return batchrpc_examples::run_program("batch_benchmark", batch_benchmark::run, argc, argv);
}
