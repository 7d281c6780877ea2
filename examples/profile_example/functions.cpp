#include "profile_example/functions.hpp"

#include <torch/types.h>

#include <chrono>
#include <thread>

namespace batchrpc_examples {

at::Tensor function_with_operators() {
  const at::Tensor first = torch::rand({3, 3});
  const at::Tensor second = torch::rand({3, 3});
  return torch::add(first, second);
}

at::Tensor heavy_function(const at::Tensor& start) {
  at::Tensor x = start;
  for (int round = 0; round < 10; ++round) {
    x = torch::mul(x, start);
    x = torch::add(x, start);
    x = torch::relu(x);
    x = torch::sigmoid(x);
  }
  return x;
}

void waiting_function(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

}  // namespace batchrpc_examples
