#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "batchrpc/torch/policy.hpp"
#include "torch/policy_weights.hpp"

namespace batchrpc::detail {

/// Until a policy's code is as it stays: TorchScript looks in its first run, and optimizes in the
/// second.
inline constexpr int kWarmUpRuns = 3;
/// PolicyOptions::replicas is at most that.
inline constexpr std::size_t kMostReplicas = 256;

/// What differs between kinds of policies. All of it runs without autograd.
class PolicyBackend {
 public:
  PolicyBackend() = default;
  virtual ~PolicyBackend() = default;
  PolicyBackend(const PolicyBackend&) = delete;
  PolicyBackend& operator=(const PolicyBackend&) = delete;

  /// Of observations [B, d…], dense and on the device, B one of the batch sizes. From several
  /// threads at once, but not beside apply().
  virtual std::vector<at::Tensor> run(const at::Tensor& observations) = 0;

  /// Gets weights that were checked to where apply() has little left to do; beside runs. They live
  /// until apply() has returned.
  virtual void prepare(const NamedTensors& weights) = 0;
  /// Changes the weights to those of the last prepare(). Nothing else runs.
  virtual void apply() = 0;
};

/// A backend, and what there is to know about it.
struct LoadedPolicy {
  std::unique_ptr<PolicyBackend> backend{};
  PolicyInfo info{};     ///< but for outputs
  std::string source{};  ///< for messages: a path
};

/// With the device by its index. Throws InvalidArgument that names the option.
[[nodiscard]] PolicyOptions checked_policy_options(PolicyOptions options);

/// Those that the policy is compiled for; else, with CUDA graphs, those that it warms up with,
/// since only they are recorded. Ascending; empty: any.
[[nodiscard]] std::vector<std::size_t> served_sizes(const PolicyInfo& info,
                                                    const PolicyOptions& options);

/// Runs it for each batch size, to warm up and to see its outputs. Throws InvalidArgument
/// where it does not take its observations.
[[nodiscard]] std::shared_ptr<Policy> serve_policy(LoadedPolicy loaded,
                                                   const PolicyOptions& options);

/// TorchScript.
[[nodiscard]] LoadedPolicy load_script_policy(const std::string& path,
                                              const PolicyOptions& options);
/// Packages, one for each batch size.
[[nodiscard]] LoadedPolicy load_compiled_policy(const std::vector<std::string>& paths,
                                                const PolicyOptions& options);

/// `described` unless the options ask for another one: then throws InvalidArgument.
[[nodiscard]] RowForm chosen_observation(const std::string& source,
                                         const std::optional<RowForm>& described,
                                         const PolicyOptions& options);

/// The line of an error that says what was wrong, without LibTorch's trace.
[[nodiscard]] std::string short_text(const std::exception& error);

}  // namespace batchrpc::detail
