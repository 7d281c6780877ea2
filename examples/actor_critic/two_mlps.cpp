#include <torch/torch.h>

#include "actor_critic/network.hpp"

namespace actor_critic {
namespace {

class TwoMlps final : public Network {
 public:
  TwoMlps(std::int64_t inputs, std::int64_t actions, std::int64_t hidden)
      : inputs_(inputs),
        policy_hidden1_(register_module("policy_hidden1", torch::nn::Linear(inputs, hidden))),
        policy_hidden2_(register_module("policy_hidden2", torch::nn::Linear(hidden, hidden))),
        policy_(register_module("policy", torch::nn::Linear(hidden, actions))),
        value_hidden1_(register_module("value_hidden1", torch::nn::Linear(inputs, hidden))),
        value_hidden2_(register_module("value_hidden2", torch::nn::Linear(hidden, hidden))),
        value_(register_module("value", torch::nn::Linear(hidden, 1))) {}

  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& states) override {
    const at::Tensor p = torch::tanh(policy_hidden2_(torch::tanh(policy_hidden1_(states))));
    const at::Tensor v = torch::tanh(value_hidden2_(torch::tanh(value_hidden1_(states))));
    return {policy_(p), value_(v).squeeze(1)};
  }
  [[nodiscard]] batchrpc::RowForm observation() const override { return {at::kFloat, {inputs_}}; }
  [[nodiscard]] std::string script() const override {
    return R"(
def forward(self, states):
    p = torch.tanh(torch.linear(states, self.policy_hidden1.weight, self.policy_hidden1.bias))
    p = torch.tanh(torch.linear(p, self.policy_hidden2.weight, self.policy_hidden2.bias))
    v = torch.tanh(torch.linear(states, self.value_hidden1.weight, self.value_hidden1.bias))
    v = torch.tanh(torch.linear(v, self.value_hidden2.weight, self.value_hidden2.bias))
    return (torch.linear(p, self.policy.weight, self.policy.bias),
            torch.linear(v, self.value.weight, self.value.bias).squeeze(1))
)";
  }

 private:
  std::int64_t inputs_;
  torch::nn::Linear policy_hidden1_;
  torch::nn::Linear policy_hidden2_;
  torch::nn::Linear policy_;
  torch::nn::Linear value_hidden1_;
  torch::nn::Linear value_hidden2_;
  torch::nn::Linear value_;
};

}  // namespace

std::shared_ptr<Network> make_two_mlps(std::int64_t inputs, std::int64_t actions,
                                       std::int64_t hidden) {
  return std::make_shared<TwoMlps>(inputs, actions, hidden);
}

}  // namespace actor_critic
