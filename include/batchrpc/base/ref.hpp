#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace batchrpc::detail {

/// Shared ownership of an object that counts its own references. It takes one word, where a
/// std::shared_ptr takes two, and no separate control block.
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}  // NOLINT: implicit
  /// Takes over one reference.
  explicit Ref(T* object) noexcept : object_(object) {}
  Ref(const Ref& other) noexcept : object_(other.object_) {
    if (object_ != nullptr) object_->add_reference();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  /// Converts to a reference to a const object.
  operator Ref<const T>() const noexcept { return Ref<const T>(Ref(*this).release()); }
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->release();
  }

  [[nodiscard]] static Ref share(T& object) noexcept {
    object.add_reference();
    return Ref(&object);
  }

  explicit operator bool() const noexcept { return object_ != nullptr; }
  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  /// Gives up the reference without releasing it.
  [[nodiscard]] T* release() noexcept { return std::exchange(object_, nullptr); }

  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.object_ == b.object_; }

 private:
  T* object_ = nullptr;
};

/// The base of final classes that Ref shares. An object is created with `new` and starts with one
/// reference.
template <class T>
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void add_reference() const noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    const bool alone = references_.load(std::memory_order_acquire) == 1;
    if (alone || references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete static_cast<const T*>(this);
  }

 protected:
  ~RefCounted() = default;

 private:
  mutable std::atomic<std::uint32_t> references_{1};
};

}  // namespace batchrpc::detail
