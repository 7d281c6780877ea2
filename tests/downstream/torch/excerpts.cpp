// Compiles the excerpt on README's first screen, and the one of docs/getting-started.md on tensors,
// which scripts/check_install.sh cuts out of them.

#include <torch/torch.h>

#include <batchrpc/torch.hpp>
#include <chrono>
#include <cstdint>

#include "readme_declarations.inc"

using namespace std::chrono_literals;

struct Counter {
  explicit Counter(int start) : value(start) {}
  int add(int more) { return value += more; }
  int value;
};

struct Policy {
  static at::Tensor sample(const at::Tensor& states) { return states.argmax(1); }
};

rpc::Future<void> excerpt(Policy policy) {
#include "readme_statements.inc"
  co_return;
}

#include "tensors_declarations.inc"

void tensors(rpc::Node& node, torch::nn::Linear model, torch::nn::Linear own_model) {
#include "tensors_statements.inc"
}
