#include <torch/torch.h>
#include <batchrpc/torch.hpp>
#include <batchrpc/trace/operator_source.hpp>
#include <iostream>

namespace rpc = batchrpc;

at::Tensor twice(at::Tensor x) { return x * 2; }

int main() {
  if (batchrpc_operator_source == nullptr || batchrpc_operator_source() == nullptr) {
    std::cerr << "the program has batchrpc::torch, and no operator source\n";
    return 1;
  }
  rpc::Node server({.name = "server"});
  server.expose<&twice>();
  rpc::Node client({.name = "client", .rank = -1, .join = server.address()});
  const at::Tensor result = client.call<&twice>("server", torch::ones({2, 3})).get();
  std::cout << "2 x 6 = " << result.sum().item<float>() << '\n';
}
