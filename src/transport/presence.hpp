#pragma once

#include <cstddef>
#include <mutex>
#include <optional>

#include "batchrpc/future/promise.hpp"

namespace batchrpc::detail {

/// Counts the threads that run something of an object, such as its tasks. Thread-safe.
class Presence {
 public:
  /// Counts the calling thread for the scope's duration, possibly within another scope.
  class Scope {
   public:
    explicit Scope(Presence& presence);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class Presence;
    Presence& presence_;
    Scope* const outer_;  // the thread's enclosing scope
  };

  /// Returns the number of scopes of the calling thread.
  [[nodiscard]] std::size_t here() const noexcept;

  /// Waits, by the calling thread's wait context, until only this thread is present, or until the
  /// deadline. Returns the number of other threads' scopes at that time. Only one thread at a time
  /// may call it.
  std::size_t wait_for_others(TimePoint deadline);

 private:
  static Scope*& innermost() noexcept;

  std::mutex mutex_;
  std::size_t count_ = 0;
  std::optional<Promise<void>> left_;  // set when only the waiting thread's scopes are left
  std::size_t awaited_ = 0;
};

}  // namespace batchrpc::detail
