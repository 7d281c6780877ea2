#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

#include "batchrpc/base/export.hpp"

/// Memory for what one thread makes and another destroys, again and again: the states of futures,
/// calls on their way, tasks. A general allocator takes such a block back under a lock for which
/// the two threads contend. Here each thread keeps some free blocks of each size, and gives and
/// takes them by the batch. After Bonwick and Adams, "Magazines and Vmem", 2001, 3.
///
/// What is free takes up to 4 MiB in all, and up to 290 KB a thread that has used all sizes.
namespace batchrpc::detail {

/// `size` bytes, aligned for any fundamental type. Throws std::bad_alloc. Thread-safe, as all here.
[[nodiscard]] BATCHRPC_EXPORT void* allocate_block(std::size_t size);
/// `size` as it was asked for.
BATCHRPC_EXPORT void free_block(void* block, std::size_t size) noexcept;

/// Gives the free blocks of the calling thread to all, and half of what nobody has needed since the
/// last time back to the program.
BATCHRPC_EXPORT void trim_blocks() noexcept;
/// The same, once a second, however often it is called.
BATCHRPC_EXPORT void trim_blocks_now_and_then() noexcept;

/// A base of the promises of coroutines. (No other forms: a coroutine's parameters are tried as
/// arguments of `new`.)
struct PooledFrame {
  static void* operator new(std::size_t size) { return allocate_block(size); }
  static void operator delete(void* block, std::size_t size) noexcept { free_block(block, size); }
};

/// A base of classes whose objects are made by `new`.
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

/// For containers, and std::allocate_shared.
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
