#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/when_all.hpp"
#include "batchrpc/future/when_any.hpp"

namespace batchrpc {
namespace detail {

/// The state of a future of the first `needed` values of several futures. `Collect` makes the
/// result of them.
template <class T, class U, class Collect>
class Quorum final : public Contest<Quorum<T, U, Collect>, T, U> {
 public:
  /// `needed` is from 1 to the number of sources.
  Quorum(std::vector<Ref<State<T>>> sources, std::size_t needed)
      : Contest<Quorum, T, U>(std::move(sources)), values_(needed) {}

  bool decide(std::size_t index, State<T>& source) noexcept {
    if (!source.result().has_value()) return fail(source.result().error());
    const std::size_t place = taken_.fetch_add(1, std::memory_order_relaxed);
    if (place >= values_.size()) return false;
    values_[place].index = index;
    try {
      if constexpr (!std::is_void_v<T>) values_[place].value.emplace(*source.take());
    } catch (...) {
      values_[place].error = std::current_exception();
    }
    if (stored_.fetch_add(1, std::memory_order_acq_rel) + 1 != values_.size()) return false;
    try {
      for (const Value& value : values_)
        if (value.error) std::rethrow_exception(value.error);
      this->store(Collect()(values_));
    } catch (...) {
      this->store(std::current_exception());
    }
    return true;
  }

  /// A value that has come.
  struct Value {
    std::size_t index = 0;
    std::optional<Stored<T>> value{};
    std::exception_ptr error{};  ///< thrown when it was moved
  };

 private:
  // Returns whether the error has made it impossible to get enough values.
  bool fail(const std::exception_ptr& error) noexcept {
    const std::size_t spare = this->count() - values_.size();
    if (failed_.fetch_add(1, std::memory_order_relaxed) != spare) return false;
    this->store(error);
    return true;
  }

  std::atomic<std::size_t> failed_{0};
  std::atomic<std::size_t> taken_{0};
  std::atomic<std::size_t> stored_{0};
  std::vector<Value> values_;  // as they came
};

/// Makes the result of when_n().
template <class T>
struct AsTheyCame {
  template <class Values>
  std::vector<FirstReady<T>> operator()(Values& values) const {
    std::vector<FirstReady<T>> all;
    all.reserve(values.size());
    for (auto& each : values) {
      if constexpr (std::is_void_v<T>) {
        all.emplace_back(each.index);
      } else {
        all.emplace_back(each.index, *std::move(each.value));
      }
    }
    return all;
  }
};

/// Makes the result of when_all_or_error().
template <class T>
struct InOrder {
  template <class Values>
  auto operator()(Values& values) const {
    if constexpr (std::is_void_v<T>) {
      return Result<void>();
    } else {
      std::vector<std::size_t> place_of(values.size());  // by the index of the future
      for (std::size_t place = 0; place < values.size(); ++place)
        place_of[values[place].index] = place;
      std::vector<T> all;
      all.reserve(values.size());
      for (const std::size_t place : place_of)
        all.push_back(*std::move(values[place].value));
      return Result<std::vector<T>>(std::move(all));
    }
  }
};

template <class T, class U, class Collect>
Future<U> quorum(std::vector<Ref<State<T>>> sources, std::size_t needed) {
  if (needed == 0) {
    if constexpr (std::is_void_v<U>) {
      return make_ready_future();
    } else {
      return make_ready_future(U());
    }
  }
  auto* const state = new Quorum<T, U, Collect>(std::move(sources), needed);
  auto future = FutureAccess::make(Ref<State<U>>(state));
  state->start();
  return future;
}

}  // namespace detail

/// Makes a future of the first `n` values of a range of futures, with their indices, in the order
/// in which they came. For example, a step that goes on with the gradients of the fastest workers.
/// Futures that fail are passed over. Once so many have failed that `n` values cannot come, it
/// fails with the error of the last of these. Fails with InvalidArgument if `n` is larger than the
/// range; if `n` is 0, it is ready at once.
///
/// It holds the others until they are ready, and drops their values. It cancels nothing; see
/// when_any(). The futures of an rvalue range are consumed. Those of an lvalue range stay unchanged
/// (T is copied). Throws InvalidArgument, and consumes nothing, if one is empty.
template <detail::FutureRange Range>
[[nodiscard]] auto when_n(Range&& futures, std::size_t n) {
  using T = typename detail::ElementOf<Range>::value_type;
  using Values = std::vector<FirstReady<T>>;
  auto sources = detail::states_of<T>(std::forward<Range>(futures));
  if (n > sources.size()) {
    return make_failed_future<Values>(
        InvalidArgument("when_n() was asked for " + std::to_string(n) + " values of " +
                        std::to_string(sources.size()) + " futures; ask for fewer"));
  }
  return detail::quorum<T, Values, detail::AsTheyCame<T>>(std::move(sources), n);
}

/// Does the same as when_all() of a range, but fails as soon as one of the futures fails, with that
/// error. The others may still be in flight then.
template <detail::FutureRange Range>
[[nodiscard]] auto when_all_or_error(Range&& futures) {
  using T = typename detail::ElementOf<Range>::value_type;
  using U = typename std::conditional_t<std::is_void_v<T>, std::type_identity<void>,
                                        std::type_identity<std::vector<detail::Stored<T>>>>::type;
  auto sources = detail::states_of<T>(std::forward<Range>(futures));
  const std::size_t all = sources.size();
  return detail::quorum<T, U, detail::InOrder<T>>(std::move(sources), all);
}

}  // namespace batchrpc
