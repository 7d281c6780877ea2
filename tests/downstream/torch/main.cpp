#include <iostream>

#include <batchrpc/base/version.hpp>
#include <torch/torch.h>

int main() {
  std::cout << "batchrpc " << batchrpc::version() << ", " << torch::ones({2, 3}).sum().item() << "\n";
}
