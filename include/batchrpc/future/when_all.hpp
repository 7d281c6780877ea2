#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "batchrpc/base/result.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/state.hpp"

namespace batchrpc {
namespace detail {

template <class F>
inline constexpr bool kIsFuture = false;
template <class T>
inline constexpr bool kIsFuture<Future<T>> = true;

template <class Range>
using ElementOf = std::remove_cvref_t<decltype(*std::begin(std::declval<Range&>()))>;

/// A range of futures that can be iterated more than once.
template <class Range>
concept FutureRange = kIsFuture<ElementOf<Range>>;

/// The state of a future to consume: its own, or that of a copy for an lvalue.
template <bool Consume, class F>
auto consumed(F& future) {
  if constexpr (Consume) {
    return FutureAccess::consume(future);
  } else {
    auto copy = FutureAccess::copy(future);
    return FutureAccess::consume(copy);
  }
}

/// The states of the futures in `futures`. Throws before it consumes any if one is empty.
template <class T, class Range>
std::vector<Ref<State<T>>> states_of(Range&& futures) {
  constexpr bool kConsume = !std::is_lvalue_reference_v<Range>;
  std::size_t count = 0;
  for (const auto& future : futures) {
    static_cast<void>(future.ready());
    ++count;
  }
  std::vector<Ref<State<T>>> states;
  states.reserve(count);
  for (auto& future : futures)
    states.push_back(consumed<kConsume>(future));
  return states;
}

/// Counts sources down and completes a state with the result of `collect()` of the derived class.
/// The future holds one reference to it, all sources together hold the other.
template <class Derived, class U>
class Join : public State<U> {
 public:
  explicit Join(std::size_t sources) noexcept : State<U>(2), remaining_(sources) {}

 protected:
  class Slot final : public Callback {
   public:
    Slot() noexcept : Callback(&source_completed, true) {}
    Join* join = nullptr;
  };

  void finish() noexcept {
    try {
      this->store(static_cast<Derived*>(this)->collect());
    } catch (...) {
      this->store(std::current_exception());
    }
    this->complete();
  }

 private:
  static void source_completed(Callback& self, StateBase& /*source*/) noexcept {
    Join& join = *static_cast<Slot&>(self).join;
    if (join.remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1) join.finish();
  }

  std::atomic<std::size_t> remaining_;
};

/// The state of when_all(range) and when_all_settled(range).
template <class T, class U, bool Settled>
class RangeJoin final : public Join<RangeJoin<T, U, Settled>, U> {
  using Base = Join<RangeJoin, U>;

 public:
  explicit RangeJoin(std::vector<Ref<State<T>>> sources)
      : Base(sources.size()),
        slots_(std::make_unique<typename Base::Slot[]>(sources.size())),
        sources_(std::move(sources)) {}

  void start() noexcept {
    const std::size_t count = sources_.size();
    if (count == 0) return this->finish();
    // The last source may complete in this loop, which destroys this object.
    for (std::size_t i = 0; i < count; ++i) {
      slots_[i].join = this;
      sources_[i]->add(slots_[i]);
    }
  }

  Result<U> collect() {
    const auto sources = std::move(sources_);
    if constexpr (Settled) {
      U results;
      results.reserve(sources.size());
      for (const auto& source : sources)
        results.push_back(source->take());
      return results;
    } else {
      for (const auto& source : sources) {
        if (!source->result().has_value()) return source->result().error();
      }
      if constexpr (std::is_void_v<T>) {
        return {};
      } else {
        U values;
        values.reserve(sources.size());
        for (const auto& source : sources)
          values.push_back(*source->take());
        return values;
      }
    }
  }

 private:
  std::unique_ptr<typename Base::Slot[]> slots_;
  std::vector<Ref<State<T>>> sources_;
};

template <class T, class U, bool Settled>
Future<U> join_range(std::vector<Ref<State<T>>> sources) {
  auto* const join = new RangeJoin<T, U, Settled>(std::move(sources));
  Future<U> future = FutureAccess::make(Ref<State<U>>(join));
  join->start();
  return future;
}

template <class T>
using Stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// The state of when_all(a, b, …).
template <class... Ts>
class PackJoin final : public Join<PackJoin<Ts...>, std::tuple<Stored<Ts>...>> {
  using Value = std::tuple<Stored<Ts>...>;
  using Base = Join<PackJoin, Value>;

 public:
  explicit PackJoin(Ref<State<Ts>>... sources)
      : Base(sizeof...(Ts)), sources_(std::move(sources)...) {}

  void start() noexcept { start(std::index_sequence_for<Ts...>()); }

  Result<Value> collect() {
    const auto sources = std::move(sources_);
    return std::apply(
        [](const auto&... source) -> Result<Value> {
          std::exception_ptr error;
          ((error = error ? error : source->result().error()), ...);
          if (error) return error;
          return Value(value_of(*source)...);
        },
        sources);
  }

 private:
  template <class T>
  static Stored<T> value_of(State<T>& source) {
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return *source.take();
    }
  }

  template <std::size_t... I>
  void start(std::index_sequence<I...> /*indices*/) noexcept {
    ((slots_[I].join = this), ...);
    (std::get<I>(sources_)->add(slots_[I]), ...);
  }

  typename Base::Slot slots_[sizeof...(Ts)];
  std::tuple<Ref<State<Ts>>...> sources_;
};

}  // namespace detail

/// Makes a future of all the values of a range of futures, in the range's order:
/// Future<std::vector<T>>, or Future<void> for futures of void. It is ready when all of them are,
/// even if some fail, so that nothing is in flight afterwards. Its error is that of the first
/// future in the range that failed. An empty range is ready at once.
///
/// The futures of an rvalue range are consumed. Those of an lvalue range stay unchanged (T is
/// copied). Throws InvalidArgument, and consumes nothing, if one is empty.
template <detail::FutureRange Range>
[[nodiscard]] auto when_all(Range&& futures) {
  using T = typename detail::ElementOf<Range>::value_type;
  using U = typename std::conditional_t<std::is_void_v<T>, std::type_identity<void>,
                                        std::type_identity<std::vector<detail::Stored<T>>>>::type;
  return detail::join_range<T, U, false>(detail::states_of<T>(std::forward<Range>(futures)));
}

/// The same for several futures of any types. Those that are rvalues are consumed. Returns a future
/// of a std::tuple of the values, with a std::monostate for void.
template <class... Futures>
requires(sizeof...(Futures) > 0 && (detail::kIsFuture<std::remove_cvref_t<Futures>> && ...))
    [[nodiscard]] auto when_all(Futures&&... futures) {
  (static_cast<void>(futures.ready()), ...);  // throws if one is empty
  using Join = detail::PackJoin<typename std::remove_cvref_t<Futures>::value_type...>;
  using Value = std::tuple<detail::Stored<typename std::remove_cvref_t<Futures>::value_type>...>;
  auto* const join = new Join(detail::consumed<!std::is_lvalue_reference_v<Futures>>(futures)...);
  auto future = detail::FutureAccess::make(detail::Ref<detail::State<Value>>(join));
  join->start();
  return future;
}

/// Makes a future of the results of a range of futures, values and errors alike, in the range's
/// order. It never fails. Consumes the futures as when_all() does.
template <detail::FutureRange Range>
[[nodiscard]] auto when_all_settled(Range&& futures) {
  using T = typename detail::ElementOf<Range>::value_type;
  return detail::join_range<T, std::vector<Result<T>>, true>(
      detail::states_of<T>(std::forward<Range>(futures)));
}

}  // namespace batchrpc
