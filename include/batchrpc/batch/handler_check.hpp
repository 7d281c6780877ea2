#pragma once

#include <functional>
#include <type_traits>

#include "batchrpc/batch/batch_info.hpp"
#include "batchrpc/batch/batch_traits.hpp"
#include "batchrpc/batch/reducer.hpp"
#include "batchrpc/call/function_traits.hpp"
#include "batchrpc/call/mistake.hpp"

/// Whether a batcher can have a handler. What a compiler says if not is as for calls
/// (batchrpc/call/mistake.hpp).
namespace batchrpc::mistake {

/// The handler of a Batcher<R(A, B)> takes all rows at once, with one parameter for each argument:
/// (std::vector<A>, std::vector<B>), or at::Tensor where A is one (include batchrpc/torch.hpp). A
/// const BatchInfo& may be the last parameter. `Rows` are the types that it gets.
template <class... Rows>
struct handler_does_not_take_all_rows;
/// The handler of a Batcher<R(...)> returns one of: a std::vector<R>, a std::vector<Result<R>>, an
/// at::Tensor [rows, ...] (include batchrpc/torch.hpp), a ForAll with one result for all rows, or a
/// Future of these.
template <class Results, class R>
struct handler_does_not_return_a_result_of_each_row;

}  // namespace batchrpc::mistake

namespace batchrpc::detail {

// Whether results of this type hold one R for each row.
template <class R, class Results>
inline constexpr bool kAnswers = [] {
  if constexpr (requires { sizeof(BatchSplit<R, Results>); }) {
    return std::is_constructible_v<BatchSplit<R, Results>, Results&&>;
  } else {
    return false;
  }
}();
template <class R, class Value>
inline constexpr bool kAnswers<R, ForAll<Value>> = std::is_convertible_v<Value, R>;

template <class Handler, class R, class... Args>
struct HandlerMistake {
  template <class... Given>
  static consteval auto of_results() {
    using Results = std::remove_cvref_t<std::invoke_result_t<Handler&, Given...>>;
    return mistake_if<!kAnswers<R, typename Unwrapped<Results>::Type>,
                      mistake::handler_does_not_return_a_result_of_each_row<Results, R>>();
  }
  static consteval auto find() {
    if constexpr (kIsReduce<Handler>) {
      return NoMistake{};
    } else if constexpr (std::is_invocable_v<Handler&, ManyRows<Args>..., const BatchInfo&>) {
      return of_results<ManyRows<Args>..., const BatchInfo&>();
    } else if constexpr (std::is_invocable_v<Handler&, ManyRows<Args>...>) {
      return of_results<ManyRows<Args>...>();
    } else {
      return Mistake<mistake::handler_does_not_take_all_rows<ManyRows<Args>...>>{};
    }
  }
};

/// Why a Batcher<R(Args...)> cannot have such a handler; void if it can.
template <class Handler, class R, class... Args>
using WhyNoHandler = typename decltype(HandlerMistake<Handler, R, Args...>::find())::type;

}  // namespace batchrpc::detail
