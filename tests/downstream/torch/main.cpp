#include <iostream>

#include <torch/torch.h>
#include <batchrpc/base/version.hpp>

int main() {
  std::cout << "batchrpc " << batchrpc::version() << ", " << torch::ones({2, 3}).sum().item()
            << "\n";
}
