#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "batchrpc/base/block_pool.hpp"

namespace batchrpc {

template <class Signature>
class UniqueFunction;

/// A move-only callable with one owner; it may capture move-only objects. It stores callables of up
/// to 48 bytes whose move cannot throw without an allocation. (The part of C++23's
/// std::move_only_function that batchrpc needs.) A null function pointer makes an empty one;
/// calling an empty one is undefined.
template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() noexcept = default;
  UniqueFunction(std::nullptr_t) noexcept {}  // NOLINT: implicit

  template <class F, class D = std::decay_t<F>>
  requires(!std::is_same_v<D, UniqueFunction> && std::is_invocable_r_v<R, D&, Args...>)
      UniqueFunction(F&& callable) {  // NOLINT: implicit
    if constexpr (std::is_pointer_v<std::remove_reference_t<F>>) {
      if (callable == nullptr) return;
    }
    if constexpr (kFits<D>) {
      ::new (static_cast<void*>(storage_)) D(std::forward<F>(callable));
      operations_ = &kInline<D>;
    } else {
      ::new (static_cast<void*>(storage_)) Box<D>*(new Box<D>(std::forward<F>(callable)));
      operations_ = &kHeap<D>;
    }
  }

  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~UniqueFunction() { reset(); }

  explicit operator bool() const noexcept { return operations_ != nullptr; }
  R operator()(Args... args) { return operations_->call(storage_, std::forward<Args>(args)...); }

 private:
  struct Operations {
    R (*call)(void*, Args&&...);
    void (*move)(void* to, void* from) noexcept;  // leaves nothing to destroy in `from`
    void (*destroy)(void*) noexcept;
  };

  static constexpr std::size_t kRoom = 48;
  template <class D>
  static constexpr bool kFits =
      sizeof(D) <= kRoom &&
      alignof(D) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<D>;

  template <class D>
  static constexpr Operations kInline{
      [](void* at, Args&&... args) -> R {
        return static_cast<R>((*static_cast<D*>(at))(std::forward<Args>(args)...));
      },
      [](void* to, void* from) noexcept {
        ::new (to) D(std::move(*static_cast<D*>(from)));
        static_cast<D*>(from)->~D();
      },
      [](void* at) noexcept { static_cast<D*>(at)->~D(); }};

  template <class D>
  struct Box : detail::Pooled {
    template <class F>
    explicit Box(F&& f) : callable(std::forward<F>(f)) {}  // NOLINT: it is never copied
    D callable;
  };
  template <class D>
  static constexpr Operations kHeap{
      [](void* at, Args&&... args) -> R {
        return static_cast<R>((*static_cast<Box<D>**>(at))->callable(std::forward<Args>(args)...));
      },
      [](void* to, void* from) noexcept { ::new (to) Box<D>*(*static_cast<Box<D>**>(from)); },
      [](void* at) noexcept { delete *static_cast<Box<D>**>(at); }};

  void take(UniqueFunction& other) noexcept {
    if (other.operations_ == nullptr) return;
    other.operations_->move(storage_, other.storage_);
    operations_ = std::exchange(other.operations_, nullptr);
  }
  void reset() noexcept {
    if (operations_ != nullptr) std::exchange(operations_, nullptr)->destroy(storage_);
  }

  alignas(std::max_align_t) std::byte storage_[kRoom];
  const Operations* operations_ = nullptr;
};

/// A piece of work that runs once.
using Task = UniqueFunction<void()>;

}  // namespace batchrpc
