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

/// Parameters and buffers of a module by their names, such as "hidden.weight". An aggregate of maps
/// of tensors, so remote functions take and return it:
///
///     batchrpc::ModuleState weights() { return batchrpc::state_of(*model).clone(); }
///     batchrpc::load_state(*own_model, node.call<&weights>("learner").get());
///
/// At most 4096 tensors travel in one call.
struct ModuleState {
  std::map<std::string, at::Tensor> parameters{};  ///< what is trained
  std::map<std::string, at::Tensor> buffers{};     ///< what is not: running means, for example

  /// The same in memory of its own: for a module that is trained on while its state is being sent.
  [[nodiscard]] BATCHRPC_EXPORT ModuleState clone() const;
};

/// The state of `module` and of all modules inside it. The tensors share the module's memory and
/// are outside of autograd; undefined ones (a bias that is off) are left out. Not while another
/// thread registers parameters.
[[nodiscard]] BATCHRPC_EXPORT ModuleState state_of(const torch::nn::Module& module);

/// Writes the values of `state` into the parameters and buffers of `module`, in place and unseen by
/// autograd, so that optimizers and other holders of the tensors see them; values are converted to
/// the module's types and devices. Throws InvalidArgument, with nothing written, unless the state
/// has exactly the module's names, with their shapes; the message tells which names are missing,
/// unknown or of another shape. Not while another thread uses the module.
BATCHRPC_EXPORT void load_state(torch::nn::Module& module, const ModuleState& state);

}  // namespace batchrpc
