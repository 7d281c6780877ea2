#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/torch/module.hpp"

/// Networks that answer observations, eager or compiled, whose weights change while they serve:
/// docs/compiled-policies.md.
namespace batchrpc {

/// What runs the network.
enum class PolicyKind : unsigned char {
  eager,     ///< a module of LibTorch
  script,    ///< TorchScript, a file .pt
  compiled,  ///< packages of AOTInductor, .pt2: not every LibTorch runs these
};
/// Such as "compiled".
[[nodiscard]] BATCHRPC_EXPORT const char* to_string(PolicyKind kind) noexcept;

/// Type and sizes [d…] of a row: of an observation, or of one of the outputs.
struct RowForm {
  at::ScalarType type = at::ScalarType::Float;  ///< of elements
  std::vector<std::int64_t> sizes{};            ///< none: a number
  bool operator==(const RowForm&) const = default;
};
/// Such as "uint8 [4, 84, 84]".
[[nodiscard]] BATCHRPC_EXPORT std::string to_string(const RowForm& form);

/// How a policy is loaded. What is left alone is as the file says.
struct PolicyOptions {
  std::optional<PolicyKind> kind{};  ///< what the file must be; nothing: whatever it is
  bool updatable = false;            ///< weights are to be changed while it serves
  /// Forwards that run at once; more may wait for one another. 1 to 256.
  std::size_t replicas = 1;
  /// Where it runs, such as "cuda:0", on the current stream of whoever calls it: all of them the
  /// same one, such as the default. "cuda": the device that is current where it is loaded.
  std::string device = "cpu";
  /// On a GPU: what a batch size launches is recorded as a CUDA graph, and replayed; one runs at a
  /// time. For networks that only launch kernels, and always the same: others are refused when they
  /// are loaded. One that takes any batch size takes those of `warm_up` then, like one that is
  /// compiled for them. Not of a compiled one that is `updatable`. Its tests have not run on a GPU
  /// yet: docs/compiled-policies.md.
  bool cuda_graphs = false;
  /// Rows that it takes. Needed for modules, and for TorchScript that does not describe itself.
  std::optional<RowForm> observation{};
  /// Batch sizes that it runs with before it is there, of a policy that takes any: those that it
  /// will see most. One of fixed sizes runs with each of these.
  std::vector<std::size_t> warm_up{1};
  std::uint64_t version = 0;  ///< of the weights that it starts with
};

/// What a policy is.
struct PolicyInfo {
  PolicyKind kind = PolicyKind::eager;  ///< what runs the network
  bool updatable = false;               ///< whether update() changes its weights
  /// That it is compiled for, or recorded (PolicyOptions::cuda_graphs), ascending; empty: any.
  std::vector<std::size_t> batch_sizes{};
  RowForm observation{};           ///< rows that it takes
  std::vector<RowForm> outputs{};  ///< in their order
  /// What update() takes, parameters and buffers by their names; none: it is frozen.
  std::map<std::string, RowForm> weights{};
  std::string device{};      ///< where it runs, such as "cuda:0"
  std::size_t replicas = 1;  ///< forwards that run at once
};

/// What a policy says of B observations.
struct PolicyOutput {
  std::vector<at::Tensor> tensors{};  ///< each [B, …], on the CPU: logits and a value, for example
  std::uint64_t version = 0;          ///< of the weights that made all of them
};

/// A network that answers observations, without autograd. Thread-safe: any number of forwards and
/// updates at once.
class BATCHRPC_EXPORT Policy {
 public:
  virtual ~Policy();

  /// Of observations [B, d…] as info() says, B at least 1, on the CPU or on the policy's device.
  /// One that has fixed batch sizes cuts and pads them itself: a result does not depend on
  /// how. Throws InvalidArgument for observations of another type or shape.
  virtual PolicyOutput forward(const at::Tensor& observations) = 0;

  /// Changes all weights, between forwards and never within one: one that begins after the return
  /// has these. `weights` are copied, and name everything that the policy has, as state_of() of
  /// its module does; types and shapes must be its own, and values finite; `version` is above the
  /// one before. Else, and for a policy that is not updatable, throws InvalidArgument that says
  /// what is wrong, and nothing has changed.
  ///
  ///     learner.call<void(batchrpc::ModuleState, std::uint64_t)>("agent", "update", …);
  ///
  /// is how a learner reaches it: `node.expose("update", [policy](const batchrpc::ModuleState&
  /// weights, std::uint64_t version) { policy->update(weights, version); })`.
  virtual void update(const ModuleState& weights, std::uint64_t version) = 0;

  /// Of the weights that a forward has which begins now.
  [[nodiscard]] virtual std::uint64_t version() const = 0;

  /// Never changes.
  [[nodiscard]] virtual const PolicyInfo& info() const = 0;
};

/// Loads a file: TorchScript (.pt), frozen unless it is to be updatable; or a package of
/// AOTInductor (.pt2); or a folder of packages, one for each batch size. scripts/export_policy.py
/// makes them. Runs it before it returns, so that no request waits for what happens at first.
///
/// Throws NotFound when there is no such file, and InvalidArgument when it is none of these, is
/// damaged, of another format or LibTorch, not as `options` ask, or when this LibTorch has no
/// packages. Files are code, which runs: load only those that you trust.
[[nodiscard]] BATCHRPC_EXPORT std::shared_ptr<Policy> load_policy(
    const std::string& path, const PolicyOptions& options = {});

namespace detail {
using PolicyFunction = std::function<std::vector<at::Tensor>(const at::Tensor&)>;
[[nodiscard]] BATCHRPC_EXPORT std::shared_ptr<Policy> make_eager_policy(
    std::shared_ptr<torch::nn::Module> module, PolicyFunction forward,
    const PolicyOptions& options);

inline std::vector<at::Tensor> tensors_of(at::Tensor&& tensor) { return {std::move(tensor)}; }
inline std::vector<at::Tensor> tensors_of(std::vector<at::Tensor>&& tensors) {
  return std::move(tensors);
}
template <class... T>
std::vector<at::Tensor> tensors_of(std::tuple<T...>&& tensors) {
  return std::apply([](auto&&... each) { return std::vector<at::Tensor>{std::move(each)...}; },
                    std::move(tensors));
}
}  // namespace detail

/// A policy of a module whose `forward(at::Tensor)` gives a tensor, or a tuple or vector of
/// tensors, and may run on several threads at once. The module is the policy's from then on: it is
/// moved to its device, is no longer in training mode, and only update() changes it. Its forward
/// must not call the policy. `options.observation` is needed.
template <class Module>
requires std::is_base_of_v<torch::nn::Module, Module>
[[nodiscard]] std::shared_ptr<Policy> make_eager_policy(const std::shared_ptr<Module>& module,
                                                        const PolicyOptions& options) {
  return detail::make_eager_policy(
      module,
      [module = module.get()](const at::Tensor& observations) {
        return detail::tensors_of(module->forward(observations));
      },
      options);
}

}  // namespace batchrpc
