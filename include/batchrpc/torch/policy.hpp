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

/// Networks that answer observations, eager or compiled, and whose weights may change while they
/// serve; see docs/compiled-policies.md.
namespace batchrpc {

/// What executes the network.
enum class PolicyKind : unsigned char {
  eager,     ///< a module of LibTorch
  script,    ///< TorchScript, a file .pt
  compiled,  ///< packages of AOTInductor, .pt2; needs a LibTorch that can run them
};
/// The name of `kind`, such as "compiled".
[[nodiscard]] BATCHRPC_EXPORT const char* to_string(PolicyKind kind) noexcept;

/// The element type and the sizes [d…] of a row: of an observation, or of an output.
struct RowForm {
  at::ScalarType type = at::ScalarType::Float;  ///< of the elements
  std::vector<std::int64_t> sizes{};            ///< empty for a number
  bool operator==(const RowForm&) const = default;
};
/// A text such as "uint8 [4, 84, 84]".
[[nodiscard]] BATCHRPC_EXPORT std::string to_string(const RowForm& form);

/// How to load a policy. Members that you do not set follow the file.
struct PolicyOptions {
  std::optional<PolicyKind> kind{};  ///< the kind that the file must have; empty: any
  bool updatable = false;            ///< whether update() may change the weights while it serves
  /// How many forwards run at once, 1 to 256. Further ones wait.
  std::size_t replicas = 1;
  /// The device, such as "cuda:0". It runs on the current stream of its callers, so all callers
  /// must use the same stream, such as the default one. "cuda" means the device that is current on
  /// the loading thread.
  std::string device = "cpu";
  /// On a GPU: records the kernels of each batch size as a CUDA graph and replays it. One graph
  /// runs at a time. The network must only launch kernels, and always the same ones; loading
  /// refuses others. A policy that takes any batch size then takes only those of `warm_up`, as if
  /// it were compiled for them. Not available for a compiled policy that is `updatable`. Its tests
  /// have not run on a GPU yet: docs/compiled-policies.md.
  bool cuda_graphs = false;
  /// The rows that it takes. Needed for modules, and for TorchScript that does not describe itself.
  std::optional<RowForm> observation{};
  /// For a policy that takes any batch size: the sizes to run once while loading. Choose the most
  /// frequent ones. A policy with fixed sizes runs each of its sizes.
  std::vector<std::size_t> warm_up{1};
  std::uint64_t version = 0;  ///< version of its first weights
};

/// The properties of a policy.
struct PolicyInfo {
  PolicyKind kind = PolicyKind::eager;  ///< what executes the network
  bool updatable = false;               ///< whether update() changes its weights
  /// The batch sizes that it is compiled for, or recorded for (PolicyOptions::cuda_graphs),
  /// ascending; empty: any size.
  std::vector<std::size_t> batch_sizes{};
  RowForm observation{};           ///< the rows that it takes
  std::vector<RowForm> outputs{};  ///< in the network's order
  /// The weights that update() takes, parameters and buffers by name; empty if it is frozen.
  std::map<std::string, RowForm> weights{};
  std::string device{};      ///< the device, such as "cuda:0"
  std::size_t replicas = 1;  ///< how many forwards run at once
};

/// The answer of a policy to B observations.
struct PolicyOutput {
  std::vector<at::Tensor> tensors{};  ///< each [B, …], on the CPU; for example logits and a value
  std::uint64_t version = 0;          ///< version of the weights that computed all of them
};

/// A network that answers observations, without autograd. Thread-safe: any number of forwards and
/// updates may run at once.
class BATCHRPC_EXPORT Policy {
 public:
  virtual ~Policy();

  /// Answers observations [B, d…] as described by info(), with B at least 1, on the CPU or on the
  /// policy's device. A policy with fixed batch sizes splits and pads them; results do not depend
  /// on how. Throws InvalidArgument for observations of another type or shape.
  virtual PolicyOutput forward(const at::Tensor& observations) = 0;

  /// Replaces all weights, between forwards and never during one. A forward that begins after the
  /// return uses the new weights. `weights` are copied. They must name exactly the policy's weights
  /// (as state_of() of its module does), with its types and shapes and finite values. `version`
  /// must be above the current one. Otherwise, and if the policy is not updatable, it throws an
  /// InvalidArgument that says what is wrong, and nothing changes.
  ///
  /// To let a learner update it, expose a function and call that:
  ///
  ///     node.expose("update", [policy](const batchrpc::ModuleState& weights, std::uint64_t
  ///     version) {
  ///       policy->update(weights, version);
  ///     });
  ///     learner.call<void(batchrpc::ModuleState, std::uint64_t)>("agent", "update", …);
  virtual void update(const ModuleState& weights, std::uint64_t version) = 0;

  /// The version of the weights that a forward uses if it begins now.
  [[nodiscard]] virtual std::uint64_t version() const = 0;

  /// The properties of this policy. They never change.
  [[nodiscard]] virtual const PolicyInfo& info() const = 0;
};

/// Loads a policy: a TorchScript file (.pt), frozen unless `options.updatable` is set; a package of
/// AOTInductor (.pt2); or a folder of packages, one for each batch size. scripts/export_policy.py
/// makes them. Runs the network before it returns, so that no request waits for one-time work.
///
/// Throws NotFound if the path does not exist. Throws InvalidArgument if it is none of these, is
/// damaged, has another format or LibTorch version, contradicts `options`, or is a package that
/// this LibTorch cannot run. Policy files contain code, which runs: load only files that you trust.
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

/// Makes a policy of a module. Its `forward(at::Tensor)` must return a tensor, or a tuple or vector
/// of tensors, and must allow calls on several threads at once. The policy takes the module over:
/// it moves it to its device and ends its training mode, and only update() may change it
/// afterwards. The module's forward must not call the policy. `options.observation` is required.
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
