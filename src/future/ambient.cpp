#include "batchrpc/future/ambient.hpp"

#include <utility>

#include "batchrpc/trace/operator_source.hpp"

namespace batchrpc::detail {
namespace {

const Ambient*& this_threads() noexcept {
  thread_local const Ambient* ambient = nullptr;
  return ambient;
}

// Switches the operator sink of the thread, in programs with LibTorch.
void follow_operators(const Ambient* before, const Ambient* now) noexcept {
  OperatorSink* const from = before != nullptr ? before->operators() : nullptr;
  OperatorSink* const to = now != nullptr ? now->operators() : nullptr;
  if (from != to) (void)batchrpc_operator_source()->exchange_sink(to);
}

}  // namespace

Ambient::~Ambient() = default;

const Ambient* Ambient::current() noexcept { return this_threads(); }

const Ambient* Ambient::exchange_current(const Ambient* ambient) noexcept {
  const Ambient* const before = std::exchange(this_threads(), ambient);
  if (batchrpc_operator_source != nullptr) follow_operators(before, ambient);
  return before;
}

}  // namespace batchrpc::detail
