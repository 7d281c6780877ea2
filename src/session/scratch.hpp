#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/per_thread.hpp"

namespace batchrpc {

/// An object lent from a store of the calling thread, which keeps a few objects for the next time.
/// For work that may nest on one thread: while a handler waits, its thread reads on into another
/// buffer.
template <class T>
class Lease {
 public:
  Lease() {
    auto& store = this_threads();
    if (store.empty()) {
      object_ = std::make_unique<T>();
    } else {
      object_ = std::move(store.back());
      store.pop_back();
    }
  }
  /// Leaves `other` without an object.
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease&&) = delete;
  ~Lease() {
    if (!object_) return;
    auto& store = this_threads();
    if (store.size() < kKept) store.push_back(std::move(object_));
  }

  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_.get(); }

 private:
  static constexpr std::size_t kKept = 2;
  struct Store {
    std::vector<std::unique_ptr<T>> objects;
  };
  static std::vector<std::unique_ptr<T>>& this_threads() {
    return detail::per_thread<Store>().objects;
  }

  std::unique_ptr<T> object_;
};

/// The buffer that a thread reads into.
struct ReadBuffer {
  static constexpr std::size_t kBytes = 128 * 1024;
  alignas(64) std::byte bytes[kBytes];
};

}  // namespace batchrpc
