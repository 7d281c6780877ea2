#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/when_all.hpp"

namespace batchrpc {

/// One of the first values of several futures, and its index.
template <class T>
struct FirstReady {
  // A constructor, because g++ 12 miscompiles temporary aggregates in co_await expressions.
  /// when_any() and when_n() create it.
  FirstReady(std::size_t which, T what) : index(which), value(std::move(what)) {}

  std::size_t index;  ///< the future's position in the arguments
  T value;            ///< the value of that future
};
template <>
struct FirstReady<void> {
  explicit FirstReady(std::size_t which) noexcept : index(which) {}

  std::size_t index;
};

namespace detail {

/// A state that any of several sources may complete. `Derived` has a function `bool decide(index,
/// source)`, which stores the result and returns true for one of them. Every source holds a
/// reference to the state, so it lives until all of them are ready.
template <class Derived, class T, class U>
class Contest : public State<U> {
 public:
  explicit Contest(std::vector<Ref<State<T>>> sources)
      : State<U>(static_cast<std::uint32_t>(sources.size()) + 1),
        slots_(std::make_unique<Slot[]>(sources.size())),
        count_(sources.size()) {
    for (std::size_t i = 0; i < count_; ++i) {
      slots_[i].contest = this;
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

 protected:
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  struct Slot final : Callback {
    Slot() noexcept : Callback(&source_completed, true) {}
    Contest* contest = nullptr;
    std::size_t index = 0;
    State<T>* source = nullptr;
  };

  static void source_completed(Callback& self, StateBase& source) noexcept {
    auto& slot = static_cast<Slot&>(self);
    Contest& contest = *slot.contest;
    const bool decides =
        static_cast<Derived&>(contest).decide(slot.index, static_cast<State<T>&>(source));
    decides ? contest.complete() : contest.release();
  }

  std::unique_ptr<Slot[]> slots_;
  std::size_t count_;
};

/// The state of when_any.
template <class T>
class Race final : public Contest<Race<T>, T, FirstReady<T>> {
 public:
  using Contest<Race<T>, T, FirstReady<T>>::Contest;

  bool decide(std::size_t index, State<T>& source) noexcept {
    if (decided_.exchange(true, std::memory_order_relaxed)) return false;
    try {
      if (!source.result().has_value()) {
        this->store(source.result().error());
      } else if constexpr (std::is_void_v<T>) {
        this->store(FirstReady<void>(index));
      } else {
        this->store(FirstReady<T>(index, *source.take()));
      }
    } catch (...) {
      this->store(std::current_exception());
    }
    return true;
  }

 private:
  std::atomic<bool> decided_{false};
};

template <class T>
Future<FirstReady<T>> race(std::vector<Ref<State<T>>> sources) {
  auto* const race = new Race<T>(std::move(sources));
  auto future = FutureAccess::make(Ref<State<FirstReady<T>>>(race));
  race->start();
  return future;
}

}  // namespace detail

/// Makes a future of the first of a range of futures to be ready: its value and index, or its error
/// if it failed. The results of the others are dropped. If several are ready already, the first in
/// the range wins. An empty range fails with InvalidArgument.
///
/// when_any() never cancels a call, not even one made with CallOptions::cancel_when_dropped: it
/// holds each future until that is ready. To end the others, pass lvalues and cancel them when the
/// first is ready (docs/getting-started.md, "Answers that come too late").
///
/// The futures of an rvalue range are consumed. Those of an lvalue range stay unchanged (T is
/// copied). Throws InvalidArgument, and consumes nothing, if one is empty.
template <detail::FutureRange Range>
[[nodiscard]] auto when_any(Range&& futures) {
  using T = typename detail::ElementOf<Range>::value_type;
  auto sources = detail::states_of<T>(std::forward<Range>(futures));
  if (sources.empty()) {
    return make_failed_future<FirstReady<T>>(
        InvalidArgument("when_any() was called with an empty range; pass at least one future"));
  }
  return detail::race<T>(std::move(sources));
}

/// The same for several futures of one type. Those that are rvalues are consumed. The index counts
/// the arguments.
template <class First, class... Futures>
requires(detail::kIsFuture<std::remove_cvref_t<First>> &&
         (detail::kIsFuture<std::remove_cvref_t<Futures>> && ...))
    [[nodiscard]] auto when_any(First&& first, Futures&&... futures) {
  using T = typename std::remove_cvref_t<First>::value_type;
  static_assert((std::is_same_v<T, typename std::remove_cvref_t<Futures>::value_type> && ...),
                "when_any takes futures of one type; convert them to one type with then()");
  static_cast<void>(first.ready());  // throws if it is empty
  (static_cast<void>(futures.ready()), ...);
  std::vector<detail::Ref<detail::State<T>>> sources;
  sources.reserve(1 + sizeof...(Futures));
  sources.push_back(detail::consumed<!std::is_lvalue_reference_v<First>>(first));
  (sources.push_back(detail::consumed<!std::is_lvalue_reference_v<Futures>>(futures)), ...);
  return detail::race<T>(std::move(sources));
}

}  // namespace batchrpc
