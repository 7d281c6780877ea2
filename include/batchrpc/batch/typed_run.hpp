#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/batch/batch_info.hpp"
#include "batchrpc/batch/batch_run.hpp"
#include "batchrpc/batch/batch_traits.hpp"
#include "batchrpc/batch/recorded_batch.hpp"
#include "batchrpc/batch/typed_call.hpp"
#include "batchrpc/call/function_traits.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc::detail {

/// The part of a batch's run that knows the types of its rows and results, but not its handler.
template <class R, class... Args>
class TypedRun : public BatchRun {
  using Call = TypedCall<R, Args...>;

 public:
  using BatchRun::BatchRun;

 protected:
  using Columns = std::tuple<ManyRows<Args>...>;

  [[nodiscard]] Columns stack(const Share& share) {
    return stack(share, std::index_sequence_for<Args...>{});
  }

  /// Completes the calls of `share` with the handler's results.
  /// @{
  template <class Value>
  void answer_with(const Share& share, ForAll<Value>&& result) {
    const R value = static_cast<R>(std::move(result.value));
    SharedReply<R> reply(value);
    answer(share, [&](BatchCall& call, std::size_t /*row*/) {
      return complete_by_shared(static_cast<Call&>(call), reply);
    });
  }
  template <class Results>
  void answer_with(const Share& share, Results&& results) {
    using Split = BatchSplit<R, std::remove_cvref_t<Results>>;
    std::optional<Split> split;
    try {
      split.emplace(std::forward<Results>(results));
      check_count(split->size(), share);
    } catch (...) {  // affects the whole batch: running it again would not help
      return fail(share, std::current_exception());
    }
    answer(share, [&](BatchCall& base, std::size_t row) {
      auto& call = static_cast<Call&>(base);
      return call.of_one ? call.complete(split->row(row))
                         : call.complete_many(split->rows(row, call.rows));
    });
  }
  /// @}

 private:
  [[nodiscard]] std::string kind_of(BatchCall& call) const final {
    return detail::kind_of(static_cast<Call&>(call));
  }
  [[nodiscard]] std::string shape_of(BatchCall& base) const final {
    auto& call = static_cast<Call&>(base);
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

  // Whether a row can lie in the memory of a batch: it has one argument, which knows its place.
  static constexpr bool kHasPlaces =
      sizeof...(Args) == 1 && (requires(const Args& row) { BatchTraits<Args>::place(row); } && ...);
  [[nodiscard]] const void* place_of([[maybe_unused]] BatchCall& base) const final {
    if constexpr (kHasPlaces) {
      auto& call = static_cast<Call&>(base);
      if (call.of_one) return BatchTraits<Args...>::place(std::get<0>(call.one()));
    }
    return nullptr;
  }
  [[nodiscard]] bool adjacent([[maybe_unused]] BatchCall& call,
                              [[maybe_unused]] BatchCall& next) const final {
    if constexpr (kHasPlaces) {
      return BatchTraits<Args...>::adjacent(std::get<0>(static_cast<Call&>(call).one()),
                                            std::get<0>(static_cast<Call&>(next).one()));
    }
    return false;
  }

  template <std::size_t... I>
  Columns stack([[maybe_unused]] const Share& share, std::index_sequence<I...>) {
    return Columns(column<I>(share, stacking(share))...);
  }

  template <std::size_t I>
  auto column(const Share& share, const Stacking& how) {
    using T = std::tuple_element_t<I, std::tuple<Args...>>;
    typename BatchTraits<T>::Builder builder(share.rows + share.padding, how);
    for (std::size_t i = share.first; i < share.last; ++i) {
      auto& call = static_cast<Call&>(this->call(i));
      if (call.of_one) {
        add(builder, std::get<I>(call.one()), how.keep);
      } else if constexpr (std::is_copy_constructible_v<T>) {
        auto& many = std::get<I>(call.many());
        builder.add_all(how.keep ? ManyRows<T>(many) : std::move(many));
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
};

/// The run of a batch by a handler of this type.
template <class Handler, class R, class... Args>
class HandlerRun final : public TypedRun<R, Args...> {
  using Base = TypedRun<R, Args...>;
  using typename Base::Columns;
  using typename Base::Share;

 public:
  HandlerRun(std::shared_ptr<Handler> handler, TakenBatch batch, bool keyed)
      : Base(std::move(batch), keyed), handler_(std::move(handler)) {}

 private:
  static constexpr bool kTakesInfo =
      std::is_invocable_v<Handler&, ManyRows<Args>..., const BatchInfo&>;

  /// Everything that a handler may refer to while it runs.
  struct Arguments {
    std::optional<Columns> columns;
    BatchInfo info;
  };

  Future<void> run_handler(const Share& share) override {
    using Results = std::remove_cvref_t<decltype(call_handler(std::declval<Arguments&>(), share))>;
    if constexpr (Unwrapped<Results>::kAsynchronous) {
      const auto arguments = std::make_shared<Arguments>();
      auto future = call_handler(*arguments, share);
      if (!future.valid()) throw InvalidArgument("the batch handler returned an empty future");
      const auto self = std::static_pointer_cast<HandlerRun>(this->shared_from_this());
      return std::move(future).then(
          [self, arguments, share](Result<typename Results::value_type> results) {
            if (!results) return self->handler_failed(share, results.error());
            self->answer_with(share, std::move(*results));
            return make_ready_future();
          });
    } else {
      Arguments arguments;
      Results results = call_handler(arguments, share);
      this->answer_with(share, std::move(results));
      return {};
    }
  }

  decltype(auto) call_handler(Arguments& arguments, const Share& share) {
    const RecordingScope scope(this->recorded());
    arguments.columns.emplace(this->stack(share));
    if constexpr (kTakesInfo) arguments.info = this->describe(share);
    this->count_run(share);
    return std::apply(
        [&](auto&&... column) -> decltype(auto) {
          if constexpr (kTakesInfo) {
            return std::invoke(*handler_, std::forward<decltype(column)>(column)...,
                               std::as_const(arguments.info));
          } else {
            return std::invoke(*handler_, std::forward<decltype(column)>(column)...);
          }
        },
        std::move(*arguments.columns));
  }

  const std::shared_ptr<Handler> handler_;
};

}  // namespace batchrpc::detail
