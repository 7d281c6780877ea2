// Compiles the excerpt on README's first screen, which scripts/check_install.sh cuts out of it.

#include <batchrpc/torch.hpp>
#include <chrono>
#include <cstdint>

#include "declarations.inc"

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
#include "statements.inc"
  co_return;
}
