#pragma once

#include <cstddef>
#include <mutex>
#include <optional>

#include "batchrpc/future/promise.hpp"

namespace batchrpc::detail {

/// Which threads run something of an object: its tasks, say. Thread-safe.
class Presence {
 public:
  /// The calling thread is there for the scope's time, perhaps on top of another.
  class Scope {
   public:
    explicit Scope(Presence& presence);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class Presence;
    Presence& presence_;
    Scope* const outer_;  // of the thread
  };

  /// How many scopes of the calling thread there are.
  [[nodiscard]] std::size_t here() const noexcept;

  /// Waits by the calling thread's context until only that thread is there, or the deadline.
  /// Returns how many scopes of others there are then. By one thread at a time.
  std::size_t wait_for_others(TimePoint deadline);

 private:
  static Scope*& innermost() noexcept;

  std::mutex mutex_;
  std::size_t count_ = 0;
  std::optional<Promise<void>> left_;  // to be set when no more than so many are there
  std::size_t awaited_ = 0;
};

}  // namespace batchrpc::detail
