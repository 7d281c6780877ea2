#pragma once

#include <algorithm>
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
/// result of them. Every source holds a reference to it, so it lives until all of them are ready.
template <class T, class U, class Collect>
class Quorum final : public State<U> {
 public:
  /// `needed` is from 1 to the number of sources.
  Quorum(std::vector<Ref<State<T>>> sources, std::size_t needed)
      : State<U>(static_cast<std::uint32_t>(sources.size()) + 1),
        slots_(std::make_unique<Slot[]>(sources.size())),
        values_(needed),
        count_(sources.size()) {
    for (std::size_t i = 0; i < count_; ++i) {
      slots_[i].quorum = this;
      slots_[i].index = i;
      slots_[i].source = sources[i].release();
    }
  }

  void start() noexcept {
    const std::size_t count = count_;
    Slot* const slots = slots_.get();
    for (std::size_t i = 0; i < count; ++i) {
      StateBase* const source = slots[i].source;
      source->add_last(slots[i]);
    }
  }

 private:
  struct Slot final : Callback {
    Slot() noexcept : Callback(&source_completed, true) {}
    Quorum* quorum = nullptr;
    std::size_t index = 0;
    State<T>* source = nullptr;  // null once it is started
  };

  static void source_completed(Callback& self, StateBase& source) noexcept {
    auto& slot = static_cast<Slot&>(self);
    Quorum& quorum = *slot.quorum;
    auto& completed = static_cast<State<T>&>(source);
    const bool decides = completed.result().has_value() ? quorum.take(slot.index, completed)
                                                        : quorum.fail(completed.result().error());
    decides ? quorum.complete() : quorum.release();
  }

  // Returns whether the error has made it impossible to get enough values.
  bool fail(const std::exception_ptr& error) noexcept {
    if (failed_.fetch_add(1, std::memory_order_relaxed) != count_ - values_.size()) return false;
    this->store(error);
    return true;
  }

  // Returns whether this was the last value that was needed.
  bool take(std::size_t index, State<T>& source) noexcept {
    const std::size_t place = taken_.fetch_add(1, std::memory_order_relaxed);
    if (place >= values_.size()) return false;
    try {
      if constexpr (std::is_void_v<T>) {
        values_[place].emplace(index);
      } else {
        values_[place].emplace(index, *source.take());
      }
    } catch (...) {  // the place stays empty
    }
    if (stored_.fetch_add(1, std::memory_order_acq_rel) + 1 != values_.size()) return false;
    try {
      this->store(Collect()(values_));
    } catch (...) {
      this->store(std::current_exception());
    }
    return true;
  }

  std::atomic<std::size_t> failed_{0};
  std::atomic<std::size_t> taken_{0};
  std::atomic<std::size_t> stored_{0};
  std::unique_ptr<Slot[]> slots_;
  std::vector<std::optional<FirstReady<T>>> values_;  // as they came
  std::size_t count_;
};

/// Throws InvalidArgument if the value could not be moved.
template <class T>
FirstReady<T>& value_in(std::optional<FirstReady<T>>& place) {
  if (!place) throw InvalidArgument("moving the value of a future has thrown an exception");
  return *place;
}

/// Makes the result of when_n().
template <class T>
struct AsTheyCame {
  std::vector<FirstReady<T>> operator()(std::vector<std::optional<FirstReady<T>>>& values) const {
    std::vector<FirstReady<T>> all;
    all.reserve(values.size());
    for (auto& value : values)
      all.push_back(std::move(value_in(value)));
    return all;
  }
};

/// Makes the result of when_all_or_error().
template <class T>
struct InOrder {
  auto operator()(std::vector<std::optional<FirstReady<T>>>& values) const {
    if constexpr (std::is_void_v<T>) {
      return Result<void>();
    } else {
      std::vector<FirstReady<T>> found = AsTheyCame<T>()(values);
      std::sort(found.begin(), found.end(),
                [](const auto& a, const auto& b) { return a.index < b.index; });
      std::vector<T> all;
      all.reserve(found.size());
      for (auto& value : found)
        all.push_back(std::move(value.value));
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
