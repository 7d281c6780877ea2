#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace batchrpc {

/// What rows have in common that go into one batch: made of a text, a number or an enumerator.
struct BatchKey {
  /// Of whatever names a key.
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

/// A function that throws, or does nothing. A predicate is none: what it returns would be lost.
template <class... Args>
class RowCheck {
 public:
  RowCheck() = default;
  /// Of whatever can be called with a row.
  template <class F>
  requires std::is_invocable_v<F&, const Args&...> RowCheck(F check)  // NOLINT: implicit
      : check_(std::move(check)) {
    static_assert(std::is_void_v<std::invoke_result_t<F&, const Args&...>>,
                  "BatchRules::check returns nothing: it throws what a row that does not fit fails "
                  "with, such as InvalidArgument");
  }
  explicit operator bool() const noexcept { return static_cast<bool>(check_); }
  void operator()(const Args&... row) const { check_(row...); }

 private:
  std::function<void(const Args&... row)> check_;
};

/// What a batcher asks of each row when it comes, on the thread that brings it: these are short,
/// and may run on several threads at once. Where they throw, the row fails with that, alone.
/// CallContext::current() tells who calls. Of a call of many rows each is asked; its rows have one
/// key, and its priority is the highest of theirs.
template <class... Args>
struct BatchRules {
  /// Throws what a row that does not fit is to fail with: InvalidArgument, which says what was
  /// expected and what came. `batchrpc::require_row` does that for tensors.
  RowCheck<Args...> check{};
  /// Only rows of one key go into one batch. Without it: tensors of one type, shape and device.
  std::function<BatchKey(const Args&... row)> key{};
  /// Rows of higher priority go first; without it all have 0.
  std::function<int(const Args&... row)> priority{};
};

}  // namespace batchrpc
