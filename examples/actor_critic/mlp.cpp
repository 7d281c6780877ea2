#include <torch/torch.h>

#include "actor_critic/network.hpp"

namespace actor_critic {
namespace {

class Mlp final : public Network {
 public:
  Mlp(std::int64_t inputs, std::int64_t actions, std::int64_t hidden)
      : inputs_(inputs),
        hidden1_(register_module("hidden1", torch::nn::Linear(inputs, hidden))),
        hidden2_(register_module("hidden2", torch::nn::Linear(hidden, hidden))),
        policy_(register_module("policy", torch::nn::Linear(hidden, actions))),
        value_(register_module("value", torch::nn::Linear(hidden, 1))) {}

  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& states) override {
    at::Tensor x = torch::tanh(hidden1_(states));
    x = torch::tanh(hidden2_(x));
    return {policy_(x), value_(x).squeeze(1)};
  }
  [[nodiscard]] batchrpc::RowForm observation() const override { return {at::kFloat, {inputs_}}; }
  [[nodiscard]] std::string script() const override {
    return R"(
def forward(self, states):
    x = torch.tanh(torch.linear(states, self.hidden1.weight, self.hidden1.bias))
    x = torch.tanh(torch.linear(x, self.hidden2.weight, self.hidden2.bias))
    return (torch.linear(x, self.policy.weight, self.policy.bias),
            torch.linear(x, self.value.weight, self.value.bias).squeeze(1))
)";
  }

 private:
  std::int64_t inputs_;
  torch::nn::Linear hidden1_;
  torch::nn::Linear hidden2_;
  torch::nn::Linear policy_;
  torch::nn::Linear value_;
};

}  // namespace

std::shared_ptr<Network> make_mlp(std::int64_t inputs, std::int64_t actions, std::int64_t hidden) {
  return std::make_shared<Mlp>(inputs, actions, hidden);
}

}  // namespace actor_critic
