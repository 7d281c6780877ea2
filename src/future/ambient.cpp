#include "batchrpc/future/ambient.hpp"

#include <utility>

#include "batchrpc/trace/operator_source.hpp"

namespace batchrpc::detail {
namespace {

const Ambient*& this_threads() noexcept {
  thread_local const Ambient* ambient = nullptr;
  return ambient;
}

// Redirects the calling thread's operators to the sink of its current work.
void follow_operators(OperatorSink* from, OperatorSink* to) noexcept {
  const OperatorSource* const left = from != nullptr ? from->source() : nullptr;
  const OperatorSource* const entered = to != nullptr ? to->source() : nullptr;
  if (left != nullptr && left != entered) (void)left->exchange_sink(nullptr);
  if (entered != nullptr) (void)entered->exchange_sink(to);
}

}  // namespace

Ambient::~Ambient() = default;

const Ambient* Ambient::current() noexcept { return this_threads(); }

const Ambient* Ambient::exchange_current(const Ambient* ambient) noexcept {
  const Ambient* const before = std::exchange(this_threads(), ambient);
  OperatorSink* const from =
      before != nullptr && before->has_operators_ ? before->operators() : nullptr;
  OperatorSink* const to =
      ambient != nullptr && ambient->has_operators_ ? ambient->operators() : nullptr;
  if (from != to) follow_operators(from, to);
  return before;
}

}  // namespace batchrpc::detail
