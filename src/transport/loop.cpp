#include "batchrpc/transport/loop.hpp"

#include <utility>

namespace batchrpc {

Loop::~Loop() = default;

Loop::NestedWaitHook Loop::exchange_nested_wait_hook(NestedWaitHook hook) noexcept {
  thread_local NestedWaitHook current;
  return std::exchange(current, hook);
}

}  // namespace batchrpc
