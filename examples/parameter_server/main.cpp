#include <iostream>

#include <batchrpc/base/interrupt.hpp>
#include "common/command_line.hpp"
#include "common/counted.hpp"
#include "common/notice.hpp"
#include "common/process.hpp"
#include "parameter_server/agreement.hpp"
#include "parameter_server/options.hpp"
#include "parameter_server/reference.hpp"
#include "parameter_server/report.hpp"
#include "parameter_server/server_process.hpp"
#include "parameter_server/trainer.hpp"

namespace {

using namespace batchrpc_examples;

std::optional<CheckResult> check(const ParameterServerOptions& options, const ServerRun& run) {
  if (!options.check) return std::nullopt;
  const std::string gradients = gradient_settings(options);
  if (run.gradients != gradients) {
    return CheckResult{.not_checked = "the model was trained with gradients of " + run.gradients +
                                      ", but one process would use those of " + gradients};
  }
  if (run.first_iteration > options.iterations) {
    return CheckResult{
        .not_checked = "the model has already had " + counted(run.first_iteration, "iteration") +
                       ", but --iterations is " + std::to_string(options.iterations)};
  }
  const at::Tensor alone = train_alone(options);
  const at::Tensor parameters = run.values.slice(0, 0, alone.numel());  // without buffers
  const CheckResult result{.relative_difference = relative_difference(parameters, alone)};
  std::cout << "Checked: the parameters differ from those of one process"
            << (options.cuda ? ", which computes with CUDA as the trainers do," : "") << " by "
            << result.relative_difference << " of their value at most ("
            << (result.passed() ? "passed" : "FAILED") << "); hash " << parameters_hash(run)
            << std::endl;
  return result;
}

/// The failure of a run that came to its end; empty: none.
std::string failure(const ServerRun& run, const std::optional<CheckResult>& checked) {
  std::string all = run.checkpoint_error;
  if (all.empty() && !run.failed_servers.empty()) all = run.failed_servers.front();
  if (!checked || checked->passed()) return all;
  if (!all.empty()) all += "; ";
  return all + (checked->not_checked.empty() ? "the parameters differ from those of one process"
                                             : "not checked: " + checked->not_checked);
}

// An error of the report must not hide the original error.
void report_failure(const ParameterServerOptions& options, ServerRun& run,
                    const std::exception& error) {
  if (options.rank.value_or(0) != 0) return;
  run.error = error.what();
  try {
    write_results(options, run, std::nullopt);
  } catch (const std::exception& unwritten) {
    say(unwritten.what());
  }
}

int run(int argc, const char* const* argv) {
  const auto started = std::chrono::steady_clock::now() - process_age();
  const auto options = parse_parameter_server_options(argc, argv);
  if (!options) return 0;
  if (!options->is_server()) {
    run_trainer(*options);
    return 0;
  }
  const batchrpc::InterruptFlag interrupts;
  ServerRun result;
  try {
    run_server(*options, std::vector<std::string>(argv + 1, argv + argc), started, interrupts,
               result);
  } catch (const batchrpc::Interrupted& interrupted) {
    // The server that started this one ends it and reports the reason.
    if (options->launched) return interrupted.exit_code();
    report_failure(*options, result, interrupted);
    throw;
  } catch (const NoAgreement&) {
    if (options->launched) return 1;  // server 0 reports the reason
    throw;
  } catch (const std::exception& error) {
    report_failure(*options, result, error);
    throw;
  }
  std::optional<CheckResult> checked;
  if (options->rank.value_or(0) == 0) {
    std::cout << summary(*options, result) << std::endl;
    checked = check(*options, result);
  }
  result.error = failure(result, checked);
  if (options->rank.value_or(0) == 0) write_results(*options, result, checked);
  if (!result.error.empty()) throw std::runtime_error(result.error);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run_program("parameter_server", &run, argc, argv); }
