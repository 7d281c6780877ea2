#include <torch/torch.h>

#include "actor_critic/network.hpp"

namespace actor_critic {
namespace {

class Atari final : public Network {
 public:
  explicit Atari(std::int64_t actions)
      : conv1_(register_module(
            "conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 16, 8).stride(4).padding(2)))),
        conv2_(register_module("conv2",
                               torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 4).stride(2)))),
        conv3_(register_module("conv3", torch::nn::Conv2d(32, 256, 11))),
        policy_(register_module("policy", torch::nn::Linear(256, actions))),
        value_(register_module("value", torch::nn::Linear(256, 1))) {}

  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& frames) override {
    at::Tensor x = torch::relu(conv1_(frames / 255));  // [B, 16, 21, 21]
    x = at::constant_pad_nd(x, {1, 2, 1, 2});
    x = torch::relu(conv2_(x));  // [B, 32, 11, 11]
    x = torch::relu(conv3_(x)).flatten(1);
    return {policy_(x), value_(x).squeeze(1)};
  }
  [[nodiscard]] batchrpc::RowForm observation() const override { return {at::kByte, {4, 84, 84}}; }
  [[nodiscard]] std::string script() const override {
    return R"(
def forward(self, frames):
    x = torch.relu(torch.conv2d(frames / 255, self.conv1.weight, self.conv1.bias, [4, 4], [2, 2]))
    x = torch.constant_pad_nd(x, [1, 2, 1, 2])
    x = torch.relu(torch.conv2d(x, self.conv2.weight, self.conv2.bias, [2, 2]))
    x = torch.relu(torch.conv2d(x, self.conv3.weight, self.conv3.bias)).flatten(1)
    return (torch.linear(x, self.policy.weight, self.policy.bias),
            torch.linear(x, self.value.weight, self.value.bias).squeeze(1))
)";
  }

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Conv2d conv3_;
  torch::nn::Linear policy_;
  torch::nn::Linear value_;
};

}  // namespace

std::shared_ptr<Network> make_atari(std::int64_t actions) {
  return std::make_shared<Atari>(actions);
}

}  // namespace actor_critic
