#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace batchrpc {

/// A key that the rows of one batch share. It can be a text, a number or an enumerator.
struct BatchKey {
  /// Converts from anything that names a key.
  /// @{
  BatchKey(std::string key) : text(std::move(key)) {}              // NOLINT: implicit
  BatchKey(std::string_view key) : text(key) {}                    // NOLINT: implicit
  BatchKey(const char* key) : text(key) {}                         // NOLINT: implicit
  BatchKey(std::integral auto key) : text(std::to_string(key)) {}  // NOLINT: implicit
  template <class E>
  requires std::is_enum_v<E> BatchKey(E key)  // NOLINT: implicit
      : BatchKey(static_cast<std::underlying_type_t<E>>(key)) {}
  /// @}

  std::string text;  ///< equal texts are equal keys; BatchInfo::key
};

/// A function that throws or does nothing. A predicate is refused, because its result would be
/// lost.
template <class... Args>
class RowCheck {
 public:
  RowCheck() = default;
  /// Takes anything that can be called with a row.
  template <class F>
  requires std::is_invocable_v<F&, const Args&...> RowCheck(F check)  // NOLINT: implicit
      : check_(std::move(check)) {
    static_assert(std::is_void_v<std::invoke_result_t<F&, const Args&...>>,
                  "BatchRules::check must return void: to refuse a row, throw an error such as "
                  "InvalidArgument");
  }
  explicit operator bool() const noexcept { return static_cast<bool>(check_); }
  void operator()(const Args&... row) const { check_(row...); }

 private:
  std::function<void(const Args&... row)> check_;
};

/// Functions that a batcher calls for each row when it arrives, on the thread that adds it. They
/// must be short, and may run on several threads at once. If one throws, that row fails alone with
/// the error. CallContext::current() identifies the caller. For a call of many rows, each row is
/// checked. All must have the same key, and the call gets their highest priority.
template <class... Args>
struct BatchRules {
  /// Throws the error with which a row that does not fit is to fail: usually InvalidArgument that
  /// names what was expected and what was received. `batchrpc::require_row` does that for tensors.
  RowCheck<Args...> check{};
  /// Only rows with the same key go into one batch. Without it, tensors are grouped by type, shape
  /// and device.
  std::function<BatchKey(const Args&... row)> key{};
  /// Rows of higher priority go first. Without it, all rows have priority 0.
  std::function<int(const Args&... row)> priority{};
};

}  // namespace batchrpc
