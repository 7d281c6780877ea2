#include "batchrpc/future/ambient.hpp"

#include <utility>

#include "batchrpc/trace/operator_source.hpp"

namespace batchrpc::detail {
namespace {

const Ambient*& this_threads() noexcept {
  thread_local const Ambient* ambient = nullptr;
  return ambient;
}

void change_sink(OperatorSink* sink) noexcept {
  if (batchrpc_operator_source == nullptr) return;  // without LibTorch
  (void)batchrpc_operator_source()->exchange_sink(sink);
}

}  // namespace

Ambient::~Ambient() = default;

const Ambient* Ambient::current() noexcept { return this_threads(); }

const Ambient* Ambient::exchange_current(const Ambient* ambient) noexcept {
  const Ambient* const before = std::exchange(this_threads(), ambient);
  OperatorSink* const from = before != nullptr ? before->operators() : nullptr;
  OperatorSink* const to = ambient != nullptr ? ambient->operators() : nullptr;
  if (from != to) change_sink(to);
  return before;
}

}  // namespace batchrpc::detail
