#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/command_line.hpp"
#include "policy_benchmark/clients.hpp"
#include "policy_benchmark/report.hpp"
#include "torch_settings/torch_settings.hpp"

namespace policy_benchmark {
namespace {

using Clock = std::chrono::steady_clock;

/// Forward passes per second.
double measure(batchrpc::Policy& policy, const at::Tensor& observations, double seconds) {
  const Clock::time_point begin = Clock::now();
  const std::chrono::duration<double> wanted(seconds);
  std::chrono::duration<double> passed{};
  int passes = 0;
  do {
    (void)policy.forward(observations);
    ++passes;
    passed = Clock::now() - begin;
  } while (passed < wanted);
  return passes / passed.count();
}

void measure_round(const Run& run, const std::vector<Form>& forms, Clients* clients, Table& table) {
  for (std::size_t i = 0; i < run.options.batches.size(); ++i) {
    const int batch = run.options.batches[i];
    for (std::size_t form = 0; form < forms.size(); ++form) {
      run.interrupts.check();
      Figures& figures = table.figures[form][i];
      const auto& policy = forms[form].policy;
      const at::Tensor observations = some_observations(policy->info(), batch);
      figures.passes_per_s.push_back(measure(*policy, observations, run.options.seconds));
      if (clients == nullptr) continue;
      const Served served = clients->measure(policy, batch);
      figures.served_passes_per_s.push_back(served.rows_per_s / batch);
      figures.p50_us.push_back(served.p50_us);
      figures.p99_us.push_back(served.p99_us);
      figures.mean_batch.push_back(served.mean_batch);
    }
  }
}

Table measure_network(const Run& run, const std::string& network, int threads) {
  batchrpc_examples::use_torch_threads(threads);
  std::unique_ptr<Clients>
      clients;  // created again each time, because a worker keeps the threads of its first forward
  if (run.options.clients > 0) clients = std::make_unique<Clients>(run);
  const std::vector<Form> forms = load_forms(network, run.options);
  for (const int batch : run.options.batches)
    check_equal(forms, batch);
  Table table{.network = network, .threads = threads};
  for (const Form& form : forms) {
    table.titles.push_back(form.title);
    table.names.push_back(form.name);
    table.figures.emplace_back(run.options.batches.size());
  }
  for (int round = 0; round < run.options.rounds; ++round)
    measure_round(run, forms, clients.get(), table);
  print_direct(run, table);
  run.out << left_out(network, run.options) << std::flush;
  if (clients) print_served(run, table);
  return table;
}

int run(int argc, const char* const* argv) {
  const std::optional<Options> options = parse_options(argc, argv);
  if (!options) return 0;
  if (options->index >= 0) return run_client(*options);

  const batchrpc::InterruptFlag interrupts;
  const Run run{*options, options->json == "-" ? std::cerr : std::cout, interrupts};
  print_head(run);
  std::vector<Table> tables;
  for (const std::string& network : options->networks) {
    for (const int threads : options->threads)
      tables.push_back(measure_network(run, network, threads));
  }
  const std::string text = report_json(*options, tables).dump(1) + "\n";
  if (options->json == "-") {
    std::cout << text << std::flush;
  } else if (!options->json.empty()) {
    batchrpc_examples::write_file(options->json, text);
  }
  return 0;
}

}  // namespace
}  // namespace policy_benchmark

int main(int argc, char** argv) {
  return batchrpc_examples::run_program("policy_benchmark", policy_benchmark::run, argc, argv);
}
