#include "base/stack_use.hpp"

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace batchrpc {
namespace {

struct Stack {
  std::uintptr_t lowest = 0;
  std::size_t size = 0;  // 0: unknown
};

Stack stack_of_this_thread() noexcept {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return {};
  void* lowest = nullptr;
  std::size_t size = 0;
  const bool known = ::pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  ::pthread_attr_destroy(&attributes);
  return known ? Stack{.lowest = reinterpret_cast<std::uintptr_t>(lowest), .size = size} : Stack{};
}

}  // namespace

// Stacks grow downwards on the platforms that are supported.
bool is_half_of_stack_used() noexcept {
  thread_local const Stack stack = stack_of_this_thread();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return here >= stack.lowest && here - stack.lowest < stack.size / 2;
}

}  // namespace batchrpc
