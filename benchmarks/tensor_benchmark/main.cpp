#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include <batchrpc/base/interrupt.hpp>
#include "common/command_line.hpp"
#include "tensor_benchmark/child.hpp"
#include "tensor_benchmark/options.hpp"
#include "tensor_benchmark/report.hpp"
#include "tensor_benchmark/rounds.hpp"
#include "torch_settings/torch_settings.hpp"

namespace tensor_benchmark {
namespace {

int run(int argc, const char* const* argv) {
  const std::optional<Options> options = parse_options(argc, argv);
  if (!options) return 0;
  batchrpc_examples::use_one_torch_thread();
  if (options->role != Role::measure) return run_child(*options);

  const batchrpc::InterruptFlag interrupts;
  nlohmann::json entries = nlohmann::json::array();
  print_head(std::cout, *options);
  measure_all(
      *options, interrupts,
      [&](const Group& group) {
        print_group(std::cout, group);
        const nlohmann::json more = to_json(group, *options);
        entries.insert(entries.end(), more.begin(), more.end());
      },
      [](const std::string& line) { std::cout << line << "\n\n"
                                              << std::flush; });
  if (!options->json.empty()) {
    batchrpc_examples::write_file(options->json, entries.dump(1) + "\n");
  }
  return 0;
}

}  // namespace
}  // namespace tensor_benchmark

int main(int argc, char** argv) {
  return batchrpc_examples::run_program("tensor_benchmark", tensor_benchmark::run, argc, argv);
}
