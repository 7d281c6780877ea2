#pragma once

#include <optional>
#include <string>

#include "base/stack_use.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/transport/loop.hpp"

namespace batchrpc::detail {

/// How deep waits may nest on one thread: each wait may run a task that waits again, on top of its
/// stack.
inline constexpr int kMaxNestedWaits = 256;

/// Whether no further wait may begin on top of `depth` others: they are too many, or use half of
/// the stack.
[[nodiscard]] inline bool is_nested_too_deep(int depth) noexcept {
  return depth >= kMaxNestedWaits || (depth > 0 && is_half_of_stack_used());
}

/// A wait would be nested deeper than that.
class NestedTooDeep final : public Overloaded {
 public:
  NestedTooDeep()
      : Overloaded("tasks of the loop that wait are nested too deep: more than " +
                   std::to_string(kMaxNestedWaits) +
                   " of them, or half of the thread's stack; use then() or co_await, which do not "
                   "block the thread, or a larger stack (ulimit -s)") {}
};

/// Waits, at a node's or loop's end; not where the thread is so deep within callbacks that it
/// cannot.
template <class T>
void wait_if_not_too_deep(const Future<T>& future,
                          const std::optional<TimePoint>& deadline = std::nullopt) {
  try {
    if (deadline) {
      future.wait_until(*deadline);
    } else {
      future.wait();
    }
  } catch (const Overloaded&) {
  }
}

/// Takes the calling thread's hook away and calls it: the first thing that each wait does.
inline void run_nested_wait_hook() noexcept {
  const Loop::NestedWaitHook hook = Loop::exchange_nested_wait_hook({});
  if (hook.hook != nullptr) hook.hook(hook.argument);
}

}  // namespace batchrpc::detail
