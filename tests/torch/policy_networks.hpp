#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "batchrpc/torch/policy.hpp"

namespace torch_test {

/// As `mlp` of scripts/export_policy.py.
struct Mlp : torch::nn::Module {
  torch::nn::Linear hidden1 = register_module("hidden1", torch::nn::Linear(4, 64));
  torch::nn::Linear hidden2 = register_module("hidden2", torch::nn::Linear(64, 64));
  torch::nn::Linear policy = register_module("policy", torch::nn::Linear(64, 2));
  torch::nn::Linear value = register_module("value", torch::nn::Linear(64, 1));

  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& states) {
    const at::Tensor x = torch::tanh(hidden2(torch::tanh(hidden1(states))));
    return {policy(x), value(x).squeeze(1)};
  }
};

/// Says the values of its two weights, and lets others run between reading one and the other.
struct TwoWeights : torch::nn::Module {
  at::Tensor first = register_parameter("first", at::zeros({1}));
  at::Tensor second = register_parameter("second", at::zeros({1}));

  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& states) {
    const at::Tensor one = states.select(1, 0) * 0 + first;
    std::this_thread::yield();
    return {one, states.select(1, 0) * 0 + second};
  }
};

/// The same by views of the weights themselves.
struct TwoViews : torch::nn::Module {
  at::Tensor first = register_parameter("first", at::zeros({1}));
  at::Tensor second = register_parameter("second", at::zeros({1}));

  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& states) const {
    return {first.expand({states.size(0)}), second.expand({states.size(0)})};
  }
};
inline const batchrpc::RowForm kFourFloats{at::kFloat, {4}};

/// Weights of these names and shapes by which Mlp and TwoWeights say nothing but the version.
inline batchrpc::ModuleState weights_of_version(const batchrpc::ModuleState& like,
                                                std::uint64_t version) {
  batchrpc::ModuleState state = like.clone();
  for (auto& [name, tensor] : state.parameters) {
    const bool says =
        name == "policy.bias" || name == "value.bias" || name == "first" || name == "second";
    tensor.fill_(says ? static_cast<double>(version) : 0);
  }
  return state;
}

/// Whether all that it says are its version.
inline bool says_its_version(const batchrpc::PolicyOutput& output) {
  for (const at::Tensor& tensor : output.tensors) {
    if (!at::all(tensor == static_cast<double>(output.version)).item<bool>()) return false;
  }
  return output.tensors.size() == 2;
}

/// Ends threads of std::async that look at a flag, before their futures wait for them: also when a
/// check throws.
class Ending {
 public:
  explicit Ending(std::atomic<bool>& over) : over_(over) {}
  ~Ending() { now(); }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  void now() const { over_ = true; }

 private:
  std::atomic<bool>& over_;
};

/// Updates a policy again and again while threads run it: every output must be of one version, of
/// that which it names, and no thread may see versions fall.
inline bool is_never_torn(batchrpc::Policy& policy, const batchrpc::ModuleState& like,
                          std::uint64_t updates) {
  std::atomic<bool> whole{true};
  std::atomic<bool> over{false};
  std::atomic<int> under_way{0};
  std::vector<std::future<void>> serving;
  const Ending ending(over);
  for (int i = 0; i < 3; ++i) {
    serving.push_back(std::async(std::launch::async, [&, rows = 1 + 2 * i] {
      std::uint64_t last = 0;
      while (!over) {
        const batchrpc::PolicyOutput output = policy.forward(at::ones({rows, 4}));
        if (output.version == 0) continue;  // before the first update
        if (!says_its_version(output) || output.version < last) whole = false;
        last = output.version;
        ++under_way;
      }
    }));
  }
  for (std::uint64_t version = 1; version <= updates; ++version) {
    policy.update(weights_of_version(like, version), version);
    const batchrpc::PolicyOutput output = policy.forward(at::ones({2, 4}));
    if (output.version != version || !says_its_version(output)) whole = false;
  }
  const auto has_thrown = [](const std::future<void>& each) {
    return each.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  while (under_way < 3 && std::none_of(serving.begin(), serving.end(), has_thrown))
    std::this_thread::yield();
  ending.now();
  for (std::future<void>& each : serving)
    each.get();
  return whole;
}

}  // namespace torch_test
