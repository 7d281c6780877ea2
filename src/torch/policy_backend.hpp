#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "batchrpc/torch/policy.hpp"
#include "torch/policy_weights.hpp"

namespace batchrpc::detail {

/// The number of runs until a policy's code is final: TorchScript profiles in its first run and
/// optimizes in the second.
inline constexpr int kWarmUpRuns = 3;
/// The limit of PolicyOptions::replicas.
inline constexpr std::size_t kMostReplicas = 256;

/// The part of a policy that depends on its kind. All of it runs without autograd.
class PolicyBackend {
 public:
  PolicyBackend() = default;
  virtual ~PolicyBackend() = default;
  PolicyBackend(const PolicyBackend&) = delete;
  PolicyBackend& operator=(const PolicyBackend&) = delete;

  /// Answers observations [B, d…], dense and on the device, with B one of the batch sizes. Several
  /// threads may call it at once, but not at the same time as apply().
  virtual std::vector<at::Tensor> run(const at::Tensor& observations) = 0;

  /// Brings checked weights to a place from which apply() needs little time. It may run beside
  /// run(). The weights must live until apply() has returned.
  virtual void prepare(const NamedTensors& weights) = 0;
  /// Switches to the weights of the last prepare(). Nothing else runs at the same time.
  virtual void apply() = 0;
};

/// A backend and its description.
struct LoadedPolicy {
  std::unique_ptr<PolicyBackend> backend{};
  PolicyInfo info{};     ///< everything but the outputs
  std::string source{};  ///< a path, for messages
};

/// Checks the options, and completes the device with its index. Throws an InvalidArgument that
/// names the option.
[[nodiscard]] PolicyOptions checked_policy_options(PolicyOptions options);

/// The batch sizes that the policy serves: those it is compiled for; else, with CUDA graphs, those
/// that it warms up with, since only these are recorded. Ascending; empty: any.
[[nodiscard]] std::vector<std::size_t> served_sizes(const PolicyInfo& info,
                                                    const PolicyOptions& options);

/// Runs the policy for each batch size, to warm up and to learn its outputs. Throws InvalidArgument
/// if it does not accept its observations.
[[nodiscard]] std::shared_ptr<Policy> serve_policy(LoadedPolicy loaded,
                                                   const PolicyOptions& options);

/// Loads TorchScript.
[[nodiscard]] LoadedPolicy load_script_policy(const std::string& path,
                                              const PolicyOptions& options);
/// Loads packages, one for each batch size.
[[nodiscard]] LoadedPolicy load_compiled_policy(const std::vector<std::string>& paths,
                                                const PolicyOptions& options);

/// Returns `described`. Throws InvalidArgument if the options ask for something else.
[[nodiscard]] RowForm chosen_observation(const std::string& source,
                                         const std::optional<RowForm>& described,
                                         const PolicyOptions& options);

/// The line of an error that states the cause, without LibTorch's trace.
[[nodiscard]] std::string short_text(const std::exception& error);

}  // namespace batchrpc::detail
