#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

#include "batchrpc/base/export.hpp"

/// Memory for small objects that one thread creates and another destroys: states of futures, calls
/// in flight, tasks. A general allocator frees such a block under a lock for which the two threads
/// contend. Here each thread keeps free blocks of each size, and exchanges them with other threads
/// in batches. After Bonwick and Adams, "Magazines and Vmem", 2001, section 3.
///
/// Free blocks take up to 4 MiB in all, and up to 290 KB for each thread that has used all sizes.
namespace batchrpc::detail {

/// Allocates `size` bytes, aligned for any fundamental type. Throws std::bad_alloc. All functions
/// of this file are thread-safe.
[[nodiscard]] BATCHRPC_EXPORT void* allocate_block(std::size_t size);
/// Frees a block. `size` must be the size that it was allocated with.
BATCHRPC_EXPORT void free_block(void* block, std::size_t size) noexcept;

/// Makes the free blocks of the calling thread available to all threads. Then frees half of the
/// blocks that no thread has needed since the last call.
BATCHRPC_EXPORT void trim_blocks() noexcept;
/// Calls trim_blocks() at most once a second, however often it is called itself.
BATCHRPC_EXPORT void trim_blocks_now_and_then() noexcept;

/// A base class for the promise types of coroutines. It has no other forms of `new`, because a
/// coroutine tries its parameters as arguments of `new`.
struct PooledFrame {
  static void* operator new(std::size_t size) { return allocate_block(size); }
  static void operator delete(void* block, std::size_t size) noexcept { free_block(block, size); }
};

/// A base class for classes whose objects are created with `new`.
struct Pooled : PooledFrame {
  using PooledFrame::operator new;
  using PooledFrame::operator delete;
  static void* operator new(std::size_t size, std::align_val_t alignment) {
    return ::operator new(size, alignment);
  }
  static void operator delete(void* block, std::size_t /*size*/,
                              std::align_val_t alignment) noexcept {
    ::operator delete(block, alignment);
  }
};

/// An allocator for containers and std::allocate_shared.
template <class T>
struct PoolAllocator {
  using value_type = T;
  using is_always_equal = std::true_type;

  PoolAllocator() noexcept = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>& /*other*/) noexcept {}  // NOLINT: implicit

  [[nodiscard]] T* allocate(std::size_t count) {
    static_assert(alignof(T) <= alignof(std::max_align_t));
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_block(count * sizeof(T)));
  }
  void deallocate(T* block, std::size_t count) noexcept { free_block(block, count * sizeof(T)); }

  friend bool operator==(const PoolAllocator&, const PoolAllocator&) noexcept { return true; }
};

}  // namespace batchrpc::detail
