#pragma once

#include <memory>

#include "batchrpc/base/export.hpp"

namespace batchrpc::detail {

class OperatorSink;

/// The work that the calling thread belongs to, such as the remote call that it answers. A callback
/// of then() belongs to the work in which it was attached. A coroutine continues after a co_await
/// in the work in which it was suspended. Neither depends on the thread.
class BATCHRPC_EXPORT Ambient {
 public:
  Ambient() = default;
  Ambient(const Ambient&) = default;
  Ambient& operator=(const Ambient&) = default;
  virtual ~Ambient();

  /// An Ambient that may be kept; null if this one ends with the thread's present work.
  [[nodiscard]] virtual std::shared_ptr<const Ambient> share() const = 0;

  /// The calling thread's Ambient; null if there is none.
  [[nodiscard]] static const Ambient* current() noexcept;
  /// Makes `ambient` the calling thread's Ambient. Returns the previous one.
  static const Ambient* exchange_current(const Ambient* ambient) noexcept;

  /// The sink for the operators that a thread runs for this work; null if there is none. It lives
  /// as long as this object. Only asked for after set_has_operators(true).
  [[nodiscard]] virtual OperatorSink* operators() const noexcept = 0;

  [[nodiscard]] static std::shared_ptr<const Ambient> share_current() {
    const Ambient* const ambient = current();
    return ambient != nullptr ? ambient->share() : nullptr;
  }

 protected:
  /// Says whether operators() may return a sink. Most work has none, and threads change work often.
  void set_has_operators(bool has_operators) noexcept { has_operators_ = has_operators; }

 private:
  [[nodiscard]] static bool has_operators(const Ambient* ambient) noexcept {
    return ambient != nullptr && ambient->has_operators_;
  }
  [[nodiscard]] static OperatorSink* sink_of(const Ambient* ambient) noexcept;

  bool has_operators_ = false;
};

/// Makes `ambient` the calling thread's Ambient for the duration of the scope. It may be null, and
/// must outlive the scope.
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
