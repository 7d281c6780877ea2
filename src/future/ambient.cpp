#include "batchrpc/future/ambient.hpp"

#include <utility>

#include "batchrpc/trace/operator_source.hpp"

namespace batchrpc::detail {
namespace {

const Ambient*& this_threads() noexcept {
  thread_local const Ambient* ambient = nullptr;
  return ambient;
}

// Redirects the calling thread's operators to the sink of its current work. It is a function of its
// own so that the usual exchange, between work without a sink, saves no registers.
[[gnu::noinline]] void follow_operators(OperatorSink* from, OperatorSink* to) noexcept {
  if (from == to) return;
  const OperatorSource* const left = from != nullptr ? from->source() : nullptr;
  const OperatorSource* const entered = to != nullptr ? to->source() : nullptr;
  if (left != nullptr && left != entered) (void)left->exchange_sink(nullptr);
  if (entered != nullptr) (void)entered->exchange_sink(to);
}

}  // namespace

Ambient::~Ambient() = default;

const Ambient* Ambient::current() noexcept { return this_threads(); }

OperatorSink* Ambient::sink_of(const Ambient* ambient) noexcept {
  return has_operators(ambient) ? ambient->operators() : nullptr;
}

const Ambient* Ambient::exchange_current(const Ambient* ambient) noexcept {
  const Ambient* const before = std::exchange(this_threads(), ambient);
  if (has_operators(before) || has_operators(ambient)) [[unlikely]]
    follow_operators(sink_of(before), sink_of(ambient));
  return before;
}

}  // namespace batchrpc::detail
