#include <torch/torch.h>
#include <batchrpc/torch.hpp>
#include <iostream>

namespace rpc = batchrpc;

at::Tensor twice(at::Tensor x) { return x * 2; }

int main() {
  rpc::Node server({.name = "server", .profiling = {.operators = rpc::torch_operators()}});
  server.expose<&twice>();
  rpc::Node client({.name = "client", .rank = -1, .join = server.address()});
  const at::Tensor result = client.call<&twice>("server", torch::ones({2, 3})).get();
  std::cout << "2 x 6 = " << result.sum().item<float>() << '\n';
}
