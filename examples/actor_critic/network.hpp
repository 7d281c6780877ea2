#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <batchrpc/torch/policy.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

namespace actor_critic {

/// A network with a head `policy` and a head `value` over a common body. The parameters have the
/// same names as in scripts/export_policy.py.
class Network : public torch::nn::Module {
 public:
  /// Maps observations [B, …] to float logits [B, actions] and values [B].
  virtual std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& observations) = 0;
  [[nodiscard]] virtual batchrpc::RowForm observation() const = 0;
  /// The same forward in TorchScript: `def forward(self, …)`.
  [[nodiscard]] virtual std::string script() const = 0;
};

/// RLlib's default network for Atari: uint8 frames [4, 84, 84], and convolutions 16×8×8/4, 32×4×4/2
/// and 256×11×11 on padded input.
[[nodiscard]] std::shared_ptr<Network> make_atari(std::int64_t actions = 6);

/// Two layers with tanh for float states [inputs].
[[nodiscard]] std::shared_ptr<Network> make_mlp(std::int64_t inputs = 4, std::int64_t actions = 2,
                                                std::int64_t hidden = 64);

/// Two layers for the policy and two for the value, without a common body.
[[nodiscard]] std::shared_ptr<Network> make_two_mlps(std::int64_t inputs, std::int64_t actions,
                                                     std::int64_t hidden = 64);

/// MinAtar's network: 16 convolutions of 3×3 and 128 units, with ReLU, for planes [channels, 10,
/// 10] of 0 and 1.
[[nodiscard]] std::shared_ptr<Network> make_minatar(const batchrpc::RowForm& observation,
                                                    std::int64_t actions);

/// Sets orthogonal weights of gain √2 in the body, 0.01 in the policy's head and 1 in the value's
/// head, and zero biases. Uses LibTorch's random generator.
void initialize_orthogonally(Network& network);

/// Makes TorchScript of the network without Python. It shares the network's weights.
[[nodiscard]] torch::jit::Module script_of(const Network& network);
/// Writes script_of(network) to a file for load_policy().
void save_script(const Network& network, const std::string& path);

/// Copies the weights of a TorchScript file, such as one of scripts/export_policy.py, into the
/// network.
void load_weights(Network& network, const std::string& script_path);

}  // namespace actor_critic
