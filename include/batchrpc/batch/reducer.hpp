#pragma once

#include <algorithm>
#include <concepts>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/batch/batch_core.hpp"
#include "batchrpc/batch/batch_info.hpp"
#include "batchrpc/batch/batch_row.hpp"
#include "batchrpc/batch/batch_run.hpp"
#include "batchrpc/batch/batch_traits.hpp"
#include "batchrpc/batch/recorded_batch.hpp"
#include "batchrpc/batch/typed_call.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc {
namespace detail {

/// Marks a batcher's handler as a reducer.
template <class Reducer>
struct Reduce {
  Reducer reducer;
};
template <class Handler>
inline constexpr bool kIsReduce = false;
template <class Reducer>
inline constexpr bool kIsReduce<Reduce<Reducer>> = true;

}  // namespace detail

/// Makes a batcher's handler for rows that are combined rather than stacked, such as gradients:
///
///     struct Sum {
///       void begin() { sum.zero_(); }                        // optional
///       void accumulate(const at::Tensor& gradient) { sum += gradient; }
///       at::Tensor finish(const batchrpc::BatchInfo& batch) {
///         return sum / static_cast<double>(batch.rows);
///       }
///       at::Tensor sum;
///     };
///     batchrpc::Batcher<at::Tensor(at::Tensor)> mean({.all_of = trainers},
///                                                    batchrpc::reduce(Sum{…}));
///
/// - `begin()` runs before a batch's first row.
/// - `accumulate(row)` runs for each row soon after its arrival, while others are still arriving.
///   The row's memory is released right after it.
/// - `finish()` runs when the batch is complete. It returns the one result for all callers, or a
///   Future of it. It may take the BatchInfo.
///
/// None of them run at the same time. If accumulate() throws, that row fails alone; accumulate()
/// must then have changed nothing. A call of many rows fails as a whole if one row throws, but the
/// rows before it stay in the result. A row that has been accumulated stays part of its batch, even
/// if its caller leaves. With BatchOptions::order_by_peer, rows are accumulated when the batch is
/// complete, in the order of their callers' ranks.
///
/// Large rows of peers are received two at a time: while one is accumulated, the next one arrives.
/// The others wait at their senders, except for at most 1 MiB of each. So memory does not grow with
/// the number of callers, unless order_by_peer is set.
template <class Reducer>
detail::Reduce<std::remove_cvref_t<Reducer>> reduce(Reducer&& reducer) {
  return {std::forward<Reducer>(reducer)};
}

namespace detail {

/// Runs a reducer on the calls of one batcher.
template <class Reducer, class R, class... Args>
class ReduceRun {
  using Call = TypedCall<R, Args...>;

 public:
  static_assert(
      requires(Reducer & reducer, Args... row) { reducer.accumulate(std::move(row)...); },
      "a reducer of a Batcher<R(A, B)> needs a member void accumulate(A, B), for each row");
  static_assert(
      requires(Reducer & reducer) { reducer.finish(); } ||
          requires(Reducer & reducer, const BatchInfo& info) { reducer.finish(info); },
      "a reducer of a Batcher<R(...)> needs a member R finish() or R finish(const "
      "BatchInfo&), which may return a Future of R");

  explicit ReduceRun(Reducer reducer) : reducer_(std::move(reducer)) {}

  /// Throws the errors of accumulate().
  void accumulate(BatchCall& base) {
    auto& call = static_cast<Call&>(base);
    const RecordingScope scope(base.extras);
    if (!begun_) {
      if constexpr (requires { reducer_.begin(); }) reducer_.begin();
      begun_ = true;
    }
    if (call.of_one) {
      std::apply([this](Args&... row) { reducer_.accumulate(std::move(row)...); }, call.one());
    } else {
      accumulate_all(call, std::index_sequence_for<Args...>{});
    }
    call.drop_arguments();
  }

  BatchEnd run(TakenBatch batch) {
    struct State {
      TakenBatch batch;
      BatchOutcome outcome{.handler_runs = 1};
      BatchInfo info;
    };
    auto state = std::make_shared<State>();
    state->batch = std::move(batch);
    accumulate_the_rest(state->batch, state->outcome);
    begun_ = false;
    if (state->batch.calls.empty()) return std::move(state->outcome);
    record_run(state->batch, 0, state->batch.calls.size());
    state->info = describe_batch(state->batch, 0, state->batch.calls.size(), 0);
    state->info.key.clear();
    try {
      using Finished = decltype(finish(state->batch, state->info));
      static_assert(std::is_convertible_v<typename Unwrapped<Finished>::Type, R>,
                    "finish() of a Batcher<R(...)>'s reducer must return an R or a Future of R");
      if constexpr (Unwrapped<Finished>::kAsynchronous) {
        auto future = finish(state->batch, state->info);
        if (!future.valid()) throw InvalidArgument("finish() returned an empty future");
        return std::move(future)
            .then([state](typename Finished::value_type result) {
              answer(state->batch, state->outcome, std::move(result));
              return std::move(state->outcome);
            })
            .on_error([state](const std::exception_ptr& error) {
              fail(state->batch, state->outcome, error);
              return std::move(state->outcome);
            });
      } else {
        answer(state->batch, state->outcome, finish(state->batch, state->info));
      }
    } catch (...) {
      fail(state->batch, state->outcome, std::current_exception());
    }
    return std::move(state->outcome);
  }

 private:
  template <std::size_t... I>
  void accumulate_all(Call& call, std::index_sequence<I...>) {
    if constexpr ((std::is_copy_constructible_v<Args> && ...) && sizeof...(Args) > 0) {
      for (std::size_t row = 0; row < call.rows; ++row)
        reducer_.accumulate(Args(BatchTraits<Args>::row(std::get<I>(call.many()), row))...);
    } else {
      throw InvalidArgument(
          "a reducer's rows cannot be copied: call the batcher with one row instead of many()");
    }
  }

  void accumulate_the_rest(TakenBatch& batch, BatchOutcome& outcome) {
    std::erase_if(batch.calls, [&](const std::unique_ptr<BatchCall>& call) {
      if (call->accumulated) return false;
      try {
        accumulate(*call);
        return false;
      } catch (...) {
        outcome.failed += call->rows;
        call->fail(std::current_exception(), true);
        return true;
      }
    });
  }

  auto finish(const TakenBatch& batch, const BatchInfo& info) {
    const RecordingScope scope(batch.recorded);
    if constexpr (requires { reducer_.finish(info); }) {
      return reducer_.finish(info);
    } else {
      return reducer_.finish();
    }
  }

  static void answer(const TakenBatch& batch, BatchOutcome& outcome, const R& value) {
    SharedReply<R> reply(value);
    complete_calls(batch, 0, batch.calls.size(), outcome,
                   [&](BatchCall& call, std::size_t /*row*/) {
                     return complete_by_shared(static_cast<Call&>(call), reply);
                   });
  }
  static void fail(const TakenBatch& batch, BatchOutcome& outcome,
                   const std::exception_ptr& error) {
    fail_calls(batch, 0, batch.calls.size(), error, outcome);
  }

  Reducer reducer_;
  bool begun_ = false;
};

}  // namespace detail
}  // namespace batchrpc
