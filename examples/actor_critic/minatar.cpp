#include <torch/torch.h>

#include "actor_critic/network.hpp"

namespace actor_critic {
namespace {

class MinAtar final : public Network {
 public:
  MinAtar(const batchrpc::RowForm& observation, std::int64_t actions)
      : observation_(observation),
        conv_(register_module("conv", torch::nn::Conv2d(observation.sizes.front(), 16, 3))),
        hidden_(register_module("hidden", torch::nn::Linear(16 * 8 * 8, 128))),
        policy_(register_module("policy", torch::nn::Linear(128, actions))),
        value_(register_module("value", torch::nn::Linear(128, 1))) {}

  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& planes) override {
    at::Tensor x = torch::relu(conv_(planes.to(torch::kFloat))).flatten(1);
    x = torch::relu(hidden_(x));
    return {policy_(x), value_(x).squeeze(1)};
  }
  [[nodiscard]] batchrpc::RowForm observation() const override { return observation_; }
  // In the script 6 means float32, whose name only Python knows.
  [[nodiscard]] std::string script() const override {
    return R"(
def forward(self, planes):
    x = torch.relu(torch.conv2d(planes.to(6), self.conv.weight, self.conv.bias)).flatten(1)
    x = torch.relu(torch.linear(x, self.hidden.weight, self.hidden.bias))
    return (torch.linear(x, self.policy.weight, self.policy.bias),
            torch.linear(x, self.value.weight, self.value.bias).squeeze(1))
)";
  }

 private:
  batchrpc::RowForm observation_;
  torch::nn::Conv2d conv_;
  torch::nn::Linear hidden_;
  torch::nn::Linear policy_;
  torch::nn::Linear value_;
};

}  // namespace

std::shared_ptr<Network> make_minatar(const batchrpc::RowForm& observation, std::int64_t actions) {
  return std::make_shared<MinAtar>(observation, actions);
}

}  // namespace actor_critic
