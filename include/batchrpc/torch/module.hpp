#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "batchrpc/base/export.hpp"
#include "batchrpc/torch/tensor.hpp"

namespace torch::nn {
class Module;
}

namespace batchrpc {

/// The parameters and buffers of a module by their names, such as "hidden.weight". It is an
/// aggregate of maps of tensors, so remote functions can take and return it:
///
///     batchrpc::ModuleState weights() { return batchrpc::state_of(*model).clone(); }
///     batchrpc::load_state(*own_model, node.call<&weights>("learner").get());
///
/// At most 4096 tensors can travel in one call.
struct ModuleState {
  std::map<std::string, at::Tensor> parameters{};  ///< trained values
  std::map<std::string, at::Tensor> buffers{};     ///< other values, such as running means

  /// Copies all tensors. Use it if the module is trained on while its state is being sent.
  [[nodiscard]] BATCHRPC_EXPORT ModuleState clone() const;
};

/// The state of `module` and of all its submodules. The tensors share the module's memory and are
/// detached from autograd. Undefined tensors (such as a disabled bias) are left out. No other
/// thread may register parameters at the same time.
[[nodiscard]] BATCHRPC_EXPORT ModuleState state_of(const torch::nn::Module& module);

/// Copies the values of `state` into the parameters and buffers of `module`, in place and outside
/// autograd, so that optimizers and other holders of the tensors see them. Values are converted to
/// the module's types and devices.
///
/// The state must have exactly the module's names and shapes. Otherwise it throws InvalidArgument
/// and writes nothing; the message lists missing and unknown names and wrong shapes. No other
/// thread may use the module at the same time.
BATCHRPC_EXPORT void load_state(torch::nn::Module& module, const ModuleState& state);

}  // namespace batchrpc
