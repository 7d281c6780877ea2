#include "largest_allocation.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

// A block that cannot be had is an exception under the sanitizers too. Visible to their libraries.
extern "C" {
[[gnu::visibility("default")]] const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
[[gnu::visibility("default")]] const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}
}

namespace {

std::atomic<std::size_t> largest{0};
std::atomic<std::size_t> allocated{0};
thread_local std::size_t until_failure = 0;  // allocations; 0: none fails

bool fails() noexcept { return until_failure > 0 && --until_failure == 0; }

void* allocate_or_null(std::size_t size, std::size_t alignment) noexcept {
  if (fails()) return nullptr;
  std::size_t seen = largest.load(std::memory_order_relaxed);
  while (size > seen && !largest.compare_exchange_weak(seen, size, std::memory_order_relaxed)) {
  }
  void* const memory =
      alignment > alignof(std::max_align_t)
          ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
          : std::malloc(size);
  if (memory != nullptr) {
    allocated.fetch_add(::malloc_usable_size(memory), std::memory_order_relaxed);
  }
  return memory;
}

void* allocate(std::size_t size, std::size_t alignment) {
  void* const memory = allocate_or_null(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  allocated.fetch_sub(::malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

// All of them, for under the sanitizers those that are left out are not made of the others.
void* operator new(std::size_t size) { return allocate(size, 1); }
void* operator new[](std::size_t size) { return allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return allocate_or_null(size, 1);
}
void* operator new[](std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return allocate_or_null(size, 1);
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t /*size*/) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { release(memory); }
void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  release(memory);
}

namespace batchrpc::test {

std::size_t largest_allocation() noexcept { return largest.load(std::memory_order_relaxed); }
void reset_largest_allocation() noexcept { largest.store(0, std::memory_order_relaxed); }
std::size_t allocated_bytes() noexcept { return allocated.load(std::memory_order_relaxed); }
void fail_allocation(std::size_t n) noexcept { until_failure = n; }
bool allocation_failed() noexcept { return std::exchange(until_failure, 0) == 0; }

}  // namespace batchrpc::test
