#pragma once

#include <concepts>
#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/batch/batch_core.hpp"
#include "batchrpc/batch/batch_options.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc {

/// How values of `T`, one a row, become one argument of a handler. The default is a vector;
/// `batchrpc/torch.hpp` stacks tensors. A form may have `misfits(const std::vector<const T*>&)`:
/// for each row the error to fail it with when it cannot be stacked with the others, else null; or
/// nothing when all can.
template <class T>
struct BatchForm {
  /// The handler's argument.
  using Stacked = std::vector<T>;
  /// Called on the thread that runs the batch, never without rows.
  static Stacked stack(std::vector<T>&& rows) { return std::move(rows); }
};

/// How a handler's result becomes `rows` values of `R`; `matches` says whether it has that many.
/// The default takes a vector; `batchrpc/torch.hpp` splits tensors.
template <class R, class Stacked>
struct BatchSplit;
template <class R>
struct BatchSplit<R, std::vector<R>> {
  static std::size_t rows(const std::vector<R>& results) { return results.size(); }
  static std::vector<R> split(std::vector<R>&& results) { return std::move(results); }
};

template <class Function>
class Batcher;

/// Gathers calls into batches: one run of the handler answers them all, and each caller gets its
/// row.
///
///     batchrpc::Batcher<float(float)> squares({.max_size = 64}, [](std::vector<float> xs) {
///       for (float& x : xs) x *= x;
///       return xs;
///     });
///     node.expose("square", squares);             // for others
///     batchrpc::Future<float> nine = squares(3);  // for this process
///
/// The handler takes one argument for each of the function's, each holding the rows in the order of
/// their arrival: a `std::vector`, or a stacked tensor [rows, …] (`batchrpc/torch.hpp`). It returns
/// the results in the same form and order, or a Future of them (a coroutine, which may take its
/// arguments by reference): as many as rows came in, else every row fails with InvalidArgument. If
/// it throws, its rows fail with what it threw, and the next batch works. It never runs twice at
/// the same time.
///
/// Copies are handles of one batcher; when the last is gone, rows that wait fail with ShutDown. A
/// peer's call has one until it is done.
/// Thread-safe.
template <class R, class... Args>
class Batcher<R(Args...)> {
  static_assert(!std::is_void_v<R>, "a batcher answers: let it return what its callers wait for");
  static_assert((std::is_same_v<Args, std::remove_cvref_t<Args>> && ...),
                "a batcher's rows are values: no references");

 public:
  /// Throws InvalidArgument when an option is out of its range.
  template <class Handler>
  Batcher(BatchOptions options, Handler handler)
      : core_(std::make_shared<detail::BatchCore>(
            std::move(options),
            [handler = std::make_shared<Handler>(std::move(handler))](
                detail::BatchCore::Rows rows) { return run(handler, std::move(rows)); })) {}

  /// Queues a row; its future has this row's result, what the handler threw, Overloaded or
  /// ShutDown.
  Future<R> operator()(Args... args) const {
    bool taken = false;
    return submit(taken, std::move(args)...);
  }
  /// The same; says whether the row was queued. Not, when it was refused.
  Future<R> submit(bool& taken, Args... args) const {
    auto row = std::make_unique<Row>(std::move(args)...);
    Future<R> future = row->promise.get_future();
    std::unique_ptr<detail::BatchRow> base = std::move(row);
    try {
      core_->add(base);
    } catch (...) {
      if (base) base->fail(std::current_exception());
    }
    taken = base == nullptr;
    return future;
  }

  /// Starts a batch with what there is.
  void flush() const { core_->flush(); }
  /// Queued rows fail with ShutDown, as do new ones; a batch that runs finishes.
  void close() const { core_->close(); }

  /// By a node that it is exposed on: from then on it uses that node's clock and workers, and its
  /// `all_of` are that node's peers. The first node counts: exposed on a second one, or after a row
  /// of this process that came before any node, it answers there, but runs where it did; and the
  /// end of the first node ends it.
  void exposed_on(const Host& host) const { core_->exposed_on(host); }

 private:
  struct Row final : detail::BatchRow {
    explicit Row(Args&&... args) : arguments(std::move(args)...) {}
    void fail(const std::exception_ptr& error) noexcept override {
      if (promise.pending()) promise.set_error(error);
    }
    std::tuple<Args...> arguments;
    Promise<R> promise;
  };
  using Rows = detail::BatchCore::Rows;
  using Columns = std::tuple<typename BatchForm<Args>::Stacked...>;

  static Row& row_of(const std::unique_ptr<detail::BatchRow>& row) {
    return static_cast<Row&>(*row);
  }

  static void fail(const Rows& rows, const std::exception_ptr& error) {
    for (const auto& row : rows)
      row->fail(error);
  }

  template <class Handler>
  static Future<void> run(const std::shared_ptr<Handler>& handler, Rows rows) {
    try {
      fail_misfits(rows, std::index_sequence_for<Args...>{});
      if (rows.empty()) return make_ready_future();
      // The arguments in their place, to which a coroutine may refer until its future is ready.
      auto columns = std::make_unique<Columns>(stack(rows, std::index_sequence_for<Args...>{}));
      auto results = call(*handler, *columns);
      using Results = decltype(results);
      if constexpr (detail::Unwrapped<Results>::kAsynchronous) {
        if (!results.valid()) throw InvalidArgument("the batch handler returned an empty future");
        return std::move(results).then(
            [handler, columns = std::move(columns),
             rows = std::move(rows)](Result<typename Results::value_type> result) mutable {
              if (result) {
                answer(rows, std::move(*result));
              } else {
                fail(rows, result.error());
              }
            });
      } else {
        answer(rows, std::move(results));
      }
    } catch (...) {
      fail(rows, std::current_exception());
    }
    return make_ready_future();
  }

  template <std::size_t... I>
  static void fail_misfits(Rows& rows, std::index_sequence<I...>) {
    (fail_misfits_of<I>(rows), ...);
  }
  template <std::size_t I, class T = std::tuple_element_t<I, std::tuple<Args...>>>
  static void fail_misfits_of(Rows& rows) {
    if constexpr (requires(std::vector<const T*> column) { BatchForm<T>::misfits(column); }) {
      std::vector<const T*> column;
      for (const auto& row : rows)
        column.push_back(&std::get<I>(row_of(row).arguments));
      const std::vector<std::exception_ptr> errors = BatchForm<T>::misfits(column);
      if (errors.empty()) return;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (errors[i]) std::exchange(rows[i], nullptr)->fail(errors[i]);
      }
      std::erase(rows, nullptr);
    }
  }

  template <std::size_t... I>
  static Columns stack(const Rows& rows, std::index_sequence<I...>) {
    return Columns(BatchForm<Args>::stack(column<I>(rows))...);
  }

  template <class Handler>
  static auto call(Handler& handler, Columns& columns) {
    static_assert(std::is_invocable_v<Handler&, typename BatchForm<Args>::Stacked...>,
                  "the handler of a Batcher<R(A, B)> takes all rows at once, one argument for each "
                  "of the function's: (std::vector<A>, std::vector<B>), or at::Tensor where A is "
                  "one (include batchrpc/torch.hpp)");
    return std::apply(handler, std::move(columns));
  }

  template <std::size_t I>
  static auto column(const Rows& rows) {
    std::vector<std::tuple_element_t<I, std::tuple<Args...>>> values;
    values.reserve(rows.size());
    for (const auto& row : rows)
      values.push_back(std::move(std::get<I>(row_of(row).arguments)));
    return values;
  }

  template <class Stacked>
  static void answer(const Rows& rows, Stacked&& stacked) {
    try {
      using Split = BatchSplit<R, std::remove_cvref_t<Stacked>>;
      static_assert(
          requires { Split::rows(stacked); },
          "the handler of a Batcher<R(...)> returns the results of all rows: a "
          "std::vector<R>, or an at::Tensor [rows, ...] (include batchrpc/torch.hpp), or "
          "a Future of one");
      const std::size_t count = Split::rows(stacked);
      if (count != rows.size()) {
        throw InvalidArgument("the batch handler returned " + std::to_string(count) +
                                  " results for " + std::to_string(rows.size()) + " rows",
                              true);
      }
      std::vector<R> results = Split::split(std::forward<Stacked>(stacked));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        try {
          row_of(rows[i]).promise.set_value(std::move(results[i]));
        } catch (...) {  // it cannot be moved
          rows[i]->fail(std::current_exception());
        }
      }
    } catch (...) {
      fail(rows, std::current_exception());
    }
  }

  std::shared_ptr<detail::BatchCore> core_;
};

}  // namespace batchrpc
