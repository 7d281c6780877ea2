#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/batch/batch_core.hpp"
#include "batchrpc/batch/batch_info.hpp"
#include "batchrpc/batch/batch_traits.hpp"
#include "batchrpc/batch/outside_of_calls.hpp"
#include "batchrpc/batch/typed_call.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc::detail {

/// Calls the handler with the stacked rows, and with the BatchInfo if it takes one.
template <class Handler, class... Stacked>
decltype(auto) call_handler(Handler& handler, std::tuple<Stacked...>& columns,
                            const BatchInfo& info) {
  return std::apply(
      [&](auto&&... column) -> decltype(auto) {
        if constexpr (std::is_invocable_v<Handler&, Stacked..., const BatchInfo&>) {
          return std::invoke(handler, std::forward<decltype(column)>(column)..., info);
        } else {
          return std::invoke(handler, std::forward<decltype(column)>(column)...);
        }
      },
      std::move(columns));
}

/// Returns the most frequent kind; the first of them if several are equally frequent.
[[nodiscard]] BATCHRPC_EXPORT const std::string& most_common(const std::vector<std::string>& kinds);

/// Describes the calls [first, last) of a batch.
[[nodiscard]] BATCHRPC_EXPORT BatchInfo describe_batch(const TakenBatch& batch, std::size_t first,
                                                       std::size_t last, std::size_t padding);

/// One batch, from when it is taken until all its calls are completed. Callbacks of the handler's
/// futures share it.
template <class Handler, class R, class... Args>
class BatchRun : public std::enable_shared_from_this<BatchRun<Handler, R, Args...>> {
  using Call = TypedCall<R, Args...>;
  using Columns = std::tuple<ManyRows<Args>...>;

 public:
  /// `keyed`: the calls have a BatchRules::key in common, so they may be of several kinds.
  BatchRun(std::shared_ptr<Handler> handler, TakenBatch batch, bool keyed)
      : handler_(std::move(handler)), batch_(std::move(batch)), keyed_(keyed) {}

  BatchEnd start() {
    try {
      if (keyed_) fail_misfits();
      if constexpr (sizeof...(Args) == 1) in_place_order();
    } catch (...) {
      fail(0, batch_.calls.size(), std::current_exception());
      return std::move(outcome_);
    }
    const std::size_t count = batch_.calls.size();
    if (count == 0) return std::move(outcome_);
    Future<void> done = run(0, count);
    if (!done.valid()) return std::move(outcome_);
    return std::move(done).then([self = this->shared_from_this()](const Result<void>&) {
      return std::move(self->outcome_);
    });
  }

 private:
  /// Everything that a handler may refer to while it runs.
  struct Arguments {
    BatchInfo info;
    std::optional<Columns> columns;
    std::size_t padding = 0;
  };

  static Call& call_of(const std::unique_ptr<BatchCall>& call) { return static_cast<Call&>(*call); }

  // Fails the calls that cannot be stacked because their kind differs from that of most others.
  void fail_misfits() {
    std::vector<std::string> kinds;
    for (const auto& call : batch_.calls)
      kinds.push_back(kind_of(call_of(call)));
    const std::string& kind = most_common(kinds);
    const auto expected = std::find(kinds.begin(), kinds.end(), kind) - kinds.begin();
    const std::string wanted = shape_of(call_of(batch_.calls[static_cast<std::size_t>(expected)]));
    std::size_t i = 0;
    std::erase_if(batch_.calls, [&](const std::unique_ptr<BatchCall>& base) {
      if (kinds[i++] == kind) return false;
      Call& call = call_of(base);
      outcome_.invalid += call.rows;
      call.fail(misfit(call, wanted), false);
      return true;
    });
  }
  static std::exception_ptr misfit(Call& call, const std::string& wanted) noexcept {
    try {
      throw InvalidArgument("a row of a batch is " + shape_of(call) + ", but the others are " +
                            wanted + "; all rows of one key have one shape, type and device");
    } catch (...) {  // or the error that the program's description of a row throws
      return std::current_exception();
    }
  }
  static std::string shape_of(Call& call) {
    std::string shape;
    const auto append = [&]<class T>(const BatchTraits<T>*, const auto& row_or_rows) {
      if constexpr (requires { BatchTraits<T>::describe(row_or_rows); }) {
        shape += (shape.empty() ? "" : " and ") + BatchTraits<T>::describe(row_or_rows);
      }
    };
    const auto append_all = [&](const auto&... arguments) {
      (append(static_cast<const BatchTraits<Args>*>(nullptr), arguments), ...);
    };
    if (call.of_one) {
      std::apply(append_all, call.one());
    } else if constexpr (sizeof...(Args) > 0) {
      std::apply(append_all, call.many());
      shape += " (many rows)";
    }
    return shape;
  }

  // Rows that were received side by side keep the order in which they lie in memory.
  void in_place_order() {
    using T = std::tuple_element_t<0, std::tuple<Args...>>;
    if constexpr (requires(const T& row) { BatchTraits<T>::place(row); }) {
      const BatchOptions& options = *batch_.options;
      if (batch_.calls.size() < 2 || options.order_by_peer || options.isolate != Isolate::none) {
        return;
      }
      struct Placed {
        const void* place;
        BatchCall* call;
      };
      std::vector<Placed> order;
      order.reserve(batch_.calls.size());
      for (const auto& call : batch_.calls) {
        Call& typed = call_of(call);
        const void* const place =
            typed.of_one ? BatchTraits<T>::place(std::get<0>(typed.one())) : nullptr;
        if (place == nullptr || call->priority != batch_.calls[0]->priority) return;
        order.push_back({place, call.get()});
      }
      const auto is_before = [](const Placed& a, const Placed& b) {
        return std::less<const void*>()(a.place, b.place);
      };
      if (std::is_sorted(order.begin(), order.end(), is_before)) return;
      std::sort(order.begin(), order.end(), is_before);
      const auto row_of = [](const Placed& placed) -> const T& {
        return std::get<0>(static_cast<Call&>(*placed.call).one());
      };
      for (std::size_t i = 1; i < order.size(); ++i) {
        if (!BatchTraits<T>::adjacent(row_of(order[i - 1]), row_of(order[i]))) return;
      }
      for (auto& call : batch_.calls)
        (void)call.release();
      for (std::size_t i = 0; i < order.size(); ++i)
        batch_.calls[i].reset(order[i].call);
    }
  }

  // Runs the handler on the calls [first, last), and completes them. Does not throw. Returns an
  // invalid future if that is done already.
  Future<void> run(std::size_t first, std::size_t last) noexcept {
    const bool again = is_divisible(first, last);
    std::exception_ptr error;
    try {
      using Results = decltype(call_handler(*handler_, std::declval<Columns&>(),
                                            std::declval<const BatchInfo&>()));
      if constexpr (Unwrapped<std::remove_cvref_t<Results>>::kAsynchronous) {
        const auto arguments = std::make_shared<Arguments>();
        auto future = call_with(*arguments, first, last, again);
        if (!future.valid()) throw InvalidArgument("the batch handler returned an empty future");
        using Value = typename std::remove_cvref_t<Results>::value_type;
        const auto self = this->shared_from_this();
        return std::move(future)
            .then([self, arguments, first, last](Result<Value> results) {
              if (results) {
                self->answer(first, last, arguments->padding, std::move(*results));
              } else if (self->is_divisible(first, last)) {
                return self->post(&BatchRun::run_bisected, first, last);
              } else {
                self->fail(first, last, results.error());
              }
              return make_ready_future();
            })
            .on_error([self, first, last](const std::exception_ptr& thrown) {
              self->fail(first, last, thrown);  // such as a result for all that cannot be moved
            });
      } else {
        Arguments arguments;
        std::remove_cvref_t<Results> results = call_with(arguments, first, last, again);
        answer(first, last, arguments.padding, std::move(results));
        return {};
      }
    } catch (...) {
      error = std::current_exception();
    }
    if (is_divisible(first, last)) return run_bisected(first, last);
    fail(first, last, error);
    return {};
  }

  decltype(auto) call_with(Arguments& arguments, std::size_t first, std::size_t last, bool again) {
    record_run(batch_, first, last);
    const RecordingScope scope(batch_.recorded);
    const std::size_t rows = rows_of(first, last);
    arguments.padding = padded_size(batch_.options->preferred_sizes, rows) - rows;
    arguments.columns.emplace(
        stack({first, last, rows, arguments.padding, again}, std::index_sequence_for<Args...>{}));
    if constexpr (std::is_invocable_v<Handler&, ManyRows<Args>..., const BatchInfo&>) {
      arguments.info = describe_batch(batch_, first, last, arguments.padding);
      if (!keyed_) arguments.info.key.clear();
    }
    ++outcome_.handler_runs;
    outcome_.padding += arguments.padding;
    return call_handler(*handler_, *arguments.columns, arguments.info);
  }

  [[nodiscard]] bool is_divisible(std::size_t first, std::size_t last) const {
    return batch_.options->isolate == Isolate::bisect && last - first > 1;
  }

  Future<void> run_bisected(std::size_t first, std::size_t last) noexcept {
    report_rows(batch_, first, last);  // of the run that failed
    const std::size_t middle = first + (last - first) / 2;
    Future<void> half = run(first, middle);
    if (!half.valid()) return run(middle, last);
    return std::move(half).then([self = this->shared_from_this(), middle, last] {
      return self->post(&BatchRun::run, middle, last);
    });
  }

  // Runs `step` on the batcher's executor, so that the thread that completes a handler's future
  // does not run the handler again.
  Future<void> post(Future<void> (BatchRun::*step)(std::size_t, std::size_t) noexcept,
                    std::size_t first, std::size_t last) {
    Promise<void> taken;
    Future<void> done = taken.get_future();
    const auto self = this->shared_from_this();
    try {
      batch_.executor->post([self, step, first, last, taken = std::move(taken)]() mutable {
        const OutsideOfCalls none;
        Future<void> step_done = (self.get()->*step)(first, last);
        if (!step_done.valid()) return taken.set_value();
        (void)std::move(step_done).then(
            [taken = std::move(taken)]() mutable { taken.set_value(); });
      });
    } catch (...) {  // NOLINT: the promise went with the task, as when a task is dropped
    }
    return std::move(done).on_error([self, first, last](const std::exception_ptr&) {
      self->fail(
          first, last,
          std::make_exception_ptr(ShutDown("the executor of the batcher's handler has stopped")));
    });
  }

  void fail(std::size_t first, std::size_t last, const std::exception_ptr& error) {
    fail_all(batch_, first, last, error, outcome_);
  }

  [[nodiscard]] std::size_t rows_of(std::size_t first, std::size_t last) const {
    std::size_t rows = 0;
    for (std::size_t i = first; i < last; ++i)
      rows += batch_.calls[i]->rows;
    return rows;
  }

  // The part of the batch that is stacked. `keep`: it may be stacked again.
  struct Share {
    std::size_t first;
    std::size_t last;
    std::size_t rows;
    std::size_t padding;
    bool keep;
  };

  template <std::size_t... I>
  Columns stack([[maybe_unused]] const Share& share, std::index_sequence<I...>) {
    return Columns(column<I>(share)...);
  }

  template <std::size_t I>
  auto column(const Share& share) {
    using T = std::tuple_element_t<I, std::tuple<Args...>>;
    typename BatchTraits<T>::Builder builder(
        share.rows + share.padding, Stacking{batch_.options->device, outcome_, share.keep});
    for (std::size_t i = share.first; i < share.last; ++i) {
      Call& call = call_of(batch_.calls[i]);
      if (call.of_one) {
        add(builder, std::get<I>(call.one()), share.keep);
      } else if constexpr (std::is_copy_constructible_v<T>) {
        auto& many = std::get<I>(call.many());
        builder.add_all(share.keep ? ManyRows<T>(many) : std::move(many));
      } else {
        builder.add_all(std::move(std::get<I>(call.many())));
      }
    }
    return builder.finish(share.padding);
  }

  template <class Builder, class T>
  static void add(Builder& builder, T& row, bool keep) {
    if constexpr (std::is_copy_constructible_v<T>) {
      if (keep) {
        T copy = row;
        return builder.add(std::move(copy));
      }
    }
    builder.add(std::move(row));
  }

  template <class Value>
  void answer(std::size_t first, std::size_t last, std::size_t /*padding*/,
              ForAll<Value>&& result) {
    const R value = static_cast<R>(std::move(result.value));
    complete_all<Call>(batch_, first, last, value, outcome_);
  }

  template <class Results>
  void answer(std::size_t first, std::size_t last, std::size_t padding, Results&& results) {
    using Split = BatchSplit<R, std::remove_cvref_t<Results>>;
    std::optional<Split> split;
    try {
      split.emplace(std::forward<Results>(results));
      check_count(split->size(), rows_of(first, last), padding);
    } catch (...) {  // affects the whole batch: running it again would not help
      return fail(first, last, std::current_exception());
    }
    report_rows(batch_, first, last);
    std::size_t row = 0;
    for (std::size_t i = first; i < last; ++i) {
      Call& call = call_of(batch_.calls[i]);
      const std::size_t rows = call.rows;
      try {
        const bool answered = call.of_one ? call.complete(split->row(row))
                                          : call.complete_many(split->rows(row, rows));
        (answered ? outcome_.answered : outcome_.failed) += rows;
      } catch (...) {
        outcome_.failed += rows;
        call.fail(std::current_exception(), true);
      }
      row += rows;
    }
  }

  static void check_count(std::size_t count, std::size_t rows, std::size_t padding) {
    if (count == rows + padding) return;
    throw InvalidArgument(
        "the batch handler returned " + std::to_string(count) + " results for " +
            std::to_string(rows) + " rows" +
            (padding > 0 ? " and " + std::to_string(padding) + " of padding" : ""),
        true);
  }

  const std::shared_ptr<Handler> handler_;
  TakenBatch batch_;
  const bool keyed_;
  BatchOutcome outcome_;
};

}  // namespace batchrpc::detail
