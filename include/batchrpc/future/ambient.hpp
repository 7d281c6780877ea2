#pragma once

#include <memory>

#include "batchrpc/base/export.hpp"

namespace batchrpc::detail {

class OperatorSink;

/// What the calling thread's work is part of: a remote call that it answers, say. Callbacks of
/// then() are part of what they were attached in, and coroutines, after a co_await, of what they
/// were suspended in, whichever thread goes on with them.
class BATCHRPC_EXPORT Ambient {
 public:
  Ambient() = default;
  Ambient(const Ambient&) = default;
  Ambient& operator=(const Ambient&) = default;
  virtual ~Ambient();

  /// One to be kept; null when it ends with the thread's present work.
  [[nodiscard]] virtual std::shared_ptr<const Ambient> share() const = 0;

  /// The calling thread's; null: none.
  [[nodiscard]] static const Ambient* current() noexcept;
  /// Makes `ambient` the calling thread's; returns the one before.
  static const Ambient* exchange_current(const Ambient* ambient) noexcept;

  /// Where the operators go that a thread runs for this; null: nowhere. Lives as long as it does.
  [[nodiscard]] virtual OperatorSink* operators() const noexcept = 0;

  [[nodiscard]] static std::shared_ptr<const Ambient> share_current() {
    const Ambient* const ambient = current();
    return ambient != nullptr ? ambient->share() : nullptr;
  }
};

/// Makes `ambient`, which may be null and outlives the scope, the calling thread's for a time.
class AmbientScope {
 public:
  explicit AmbientScope(const Ambient* ambient) noexcept
      : outer_(Ambient::exchange_current(ambient)) {}
  ~AmbientScope() { Ambient::exchange_current(outer_); }
  AmbientScope(const AmbientScope&) = delete;
  AmbientScope& operator=(const AmbientScope&) = delete;

 private:
  const Ambient* const outer_;
};

}  // namespace batchrpc::detail
