#pragma once

#include <utility>

namespace batchrpc::detail {

/// Something that one thread at a time drives, here the calling thread: a loop, or the loops of an
/// embedder's context. It lives on that thread's stack, with others below it.
class Driven {
 public:
  Driven(const Driven&) = delete;
  Driven& operator=(const Driven&) = delete;

  /// Returns the calling thread's object for `what`, if that thread drives it and has not suspended
  /// it; else null.
  [[nodiscard]] static Driven* find(const void* what) noexcept {
    Driven* driven = innermost();
    while (driven != nullptr && !(driven->what_ == what && driven->active_))
      driven = driven->outer_;
    return driven;
  }

  /// Used before a thread waits, or runs code that belongs to something else: for the scope's
  /// duration, other threads may drive everything that it drives, except `own`.
  class Suspension {
   public:
    explicit Suspension(const Driven* own = nullptr) : first_(innermost()) {
      for (Driven* driven = first_; driven != nullptr; driven = driven->outer_) {
        if (driven == own || !driven->active_) continue;
        driven->suspend();
        driven->suspended_by_ = this;
      }
    }
    /// Waits until the suspended objects are free again.
    ~Suspension() {
      for (Driven* driven = first_; driven != nullptr; driven = driven->outer_) {
        if (driven->suspended_by_ != this) continue;
        driven->suspended_by_ = nullptr;
        driven->resume();
      }
    }
    Suspension(const Suspension&) = delete;
    Suspension& operator=(const Suspension&) = delete;

   private:
    Driven* const first_;
  };

 protected:
  explicit Driven(const void* what) noexcept
      : what_(what), outer_(std::exchange(innermost(), this)) {}
  ~Driven() { innermost() = outer_; }

  /// Each sets active_.
  virtual void suspend() = 0;
  virtual void resume() = 0;

  bool active_ = true;

 private:
  static Driven*& innermost() noexcept {
    thread_local Driven* driven = nullptr;
    return driven;
  }

  const void* const what_;
  Driven* const outer_;
  const Suspension* suspended_by_ = nullptr;
};

}  // namespace batchrpc::detail
