#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/batch/batch_call_options.hpp"
#include "batchrpc/batch/batch_core.hpp"
#include "batchrpc/batch/batch_options.hpp"
#include "batchrpc/batch/batch_rules.hpp"
#include "batchrpc/batch/batch_run.hpp"
#include "batchrpc/batch/batch_statistics.hpp"
#include "batchrpc/batch/batch_traits.hpp"
#include "batchrpc/batch/batcher_state.hpp"
#include "batchrpc/batch/reducer.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc {

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
/// The handler is a function, a lambda, or a method with its object. It takes one argument for each
/// of the function's, each holding the rows in the order of their arrival: a `std::vector`, or a
/// stacked tensor [rows, …] (`batchrpc/torch.hpp`); and, if it likes, a `const BatchInfo&` behind.
/// It returns the results in the same order, as many as rows came in (else every row fails with
/// InvalidArgument): a `std::vector<R>`, a tensor [rows, …], a `std::vector<Result<R>>` for an
/// outcome a row, a ForAll for one result for all; or a Future of any of these (a coroutine, which
/// may take its arguments by reference). If it throws, its rows fail with what it threw, and the
/// next batch works. `reduce()` makes a handler that takes rows one by one.
///
/// Copies are handles of one batcher; when the last is gone, rows that wait fail with ShutDown. A
/// peer's call has one until it is done. Thread-safe. docs/batching.md tells of all of it.
template <class R, class... Args>
class Batcher<R(Args...)> {
  static_assert(!std::is_void_v<R>, "a batcher answers: let it return what its callers wait for");
  static_assert((std::is_same_v<Args, std::remove_cvref_t<Args>> && ...),
                "a batcher's rows are values: no references");

  using State = detail::BatcherState<R, Args...>;

 public:
  /// Throws InvalidArgument when an option is out of its range, or does not go with these types.
  template <class Handler>
  Batcher(BatchOptions options, Handler handler, BatchRules<Args...> rules = {})
      : state_(std::make_shared<State>()) {
    state_->rules = std::move(rules);
    state_->core = detail::BatchCore::make(std::move(options), work(std::move(handler)));
  }
  /// The same with a method; `object` is a pointer to it, perhaps a shared one, which is kept.
  template <class Method, class Object>
  requires std::is_member_function_pointer_v<Method> Batcher(BatchOptions options, Method method,
                                                             Object object,
                                                             BatchRules<Args...> rules = {})
      : Batcher(std::move(options), std::bind_front(method, std::move(object)), std::move(rules)) {}

  /// Queues a row; its future has this row's result, or what the handler threw; Overloaded,
  /// ShutDown, TimedOut or Cancelled, when it never ran.
  Future<R> operator()(Args... args) const { return call_with({}, std::move(args)...); }
  /// The same with options of its own.
  Future<R> call_with(const BatchCallOptions& options, Args... args) const {
    return state_->template submit<R>(options, detail::kOfOne,
                                      std::tuple<Args...>(std::move(args)...));
  }

  /// For callers of many rows at once, which stay together, in one batch with others': takes
  /// `std::vector`s or tensors [k, …], all of the same k, and gives the k results. Exposed under a
  /// name of its own:
  ///
  ///     node.expose("squares", squares.many());
  class Many {
   public:
    Future<ManyRows<R>> operator()(ManyRows<Args>... rows) const {
      return call_with({}, std::move(rows)...);
    }
    /// The same with options of its own.
    Future<ManyRows<R>> call_with(const BatchCallOptions& options, ManyRows<Args>... rows) const {
      return state_->template submit<ManyRows<R>>(
          options, detail::kOfMany, std::tuple<ManyRows<Args>...>(std::move(rows)...));
    }
    /// For a node.
    /// @{
    void exposed_on(const std::shared_ptr<Host>& host) const { state_->core->exposed_on(host); }
    void take_call(detail::IncomingCall&& call) const {
      state_->template take<ManyRows<R>, ManyRows<Args>...>(detail::kOfMany, detail::Before<>{},
                                                            std::move(call), nullptr);
    }
    [[nodiscard]] detail::ReceivePlan announce(
        Decoder& arguments, const std::shared_ptr<detail::TransferGate>& gate) const {
      return state_->announce(detail::kOfMany, detail::Before<>{}, arguments, gate);
    }
    /// @}

   private:
    friend class Batcher;
    explicit Many(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };
  [[nodiscard]] Many many() const requires(sizeof...(Args) > 0) { return Many(state_); }

  /// Starts what waits, as soon as the handler is free; what is held back (OnFull::wait) as soon as
  /// there is room.
  void flush() const { state_->core->flush(); }
  /// Starts no batch until resume(); rows wait, and those that run go on.
  void pause() const { state_->core->pause(); }
  /// Ends a pause.
  void resume() const { state_->core->resume(); }
  /// New rows fail with ShutDown; those that wait do, too, or run now. The future is ready when
  /// none waits or runs any more, and all have been told: so neither the handler nor a row's
  /// callback waits for it. (Callbacks that their thread puts off, since it is inside of another
  /// one, may come later.)
  Future<void> close(BatchClose how = BatchClose::fail) const { return state_->core->close(how); }

  /// The options in force.
  [[nodiscard]] BatchOptions options() const { return *state_->core->options(); }
  /// Changes them, from the next batch on. Throws InvalidArgument that names the option that is out
  /// of its range, or that cannot be changed; then nothing is.
  void set_options(BatchOptions options) const { state_->core->set_options(std::move(options)); }

  /// What it has done so far.
  [[nodiscard]] BatchStatistics statistics() const { return state_->core->statistics(); }

  /// By a node that it is exposed on: from then on it uses that node's clock and workers, and its
  /// groups are that node's peers. The first node counts: exposed on a second one, or after a row
  /// of this process that came before any node, it answers there, but runs where it did; and the
  /// end of the first node ends it. A lock (Host::exclusive) is the first node's, too: another one
  /// is refused with InvalidArgument.
  void exposed_on(const std::shared_ptr<Host>& host) const { state_->core->exposed_on(host); }
  /// By a node: a peer's call, which has `First` before its own arguments; `owner` lives until it
  /// is answered.
  template <class... First>
  void take_call(detail::IncomingCall&& call, std::shared_ptr<const void> owner = nullptr) const {
    state_->template take<R, Args...>(detail::kOfOne, detail::Before<First...>{}, std::move(call),
                                      std::move(owner));
  }
  /// By a node: such a call is coming in.
  template <class... First>
  [[nodiscard]] detail::ReceivePlan announce(
      Decoder& arguments, const std::shared_ptr<detail::TransferGate>& gate) const {
    return state_->announce(detail::kOfOne, detail::Before<First...>{}, arguments, gate);
  }

 private:
  static constexpr bool kCopyable = (std::is_copy_constructible_v<Args> && ...);

  template <class Handler>
  detail::BatchWork work(Handler&& handler) const {
    using Kept = std::remove_cvref_t<Handler>;
    if constexpr (detail::kIsReduce<Kept>) {
      return reducer_work(std::move(handler.reducer));
    } else {
      const bool keyed = static_cast<bool>(state_->rules.key);
      auto kept = std::make_shared<Kept>(std::forward<Handler>(handler));
      return {.run =
                  [kept = std::move(kept), keyed](detail::TakenBatch batch) {
                    using Run = detail::BatchRun<Kept, R, Args...>;
                    return std::make_shared<Run>(kept, std::move(batch), keyed)->start();
                  },
              .check_device = device_check(),
              .can_pad = kCopyable,
              .can_repeat = kCopyable};
    }
  }
  static std::function<void(const std::string&)> device_check() {
    std::function<void(const std::string&)> check;
    [[maybe_unused]] const auto look_at = [&]<class T>(const BatchTraits<T>* /*traits*/) {
      if constexpr (requires { BatchTraits<T>::check_device; }) {
        check = [](const std::string& device) { BatchTraits<T>::check_device(device); };
      }
    };
    (look_at(static_cast<const BatchTraits<Args>*>(nullptr)), ...);
    return check;
  }
  template <class Reducer>
  detail::BatchWork reducer_work(Reducer&& reducer) const {
    if (state_->rules.key || state_->rules.priority) {
      throw InvalidArgument(
          "BatchRules: a reducer has one batch at a time, without key or priority");
    }
    state_->reduces = true;
    using Run = detail::ReduceRun<std::remove_cvref_t<Reducer>, R, Args...>;
    auto run = std::make_shared<Run>(std::forward<Reducer>(reducer));
    return {.run = [run](detail::TakenBatch batch) { return run->run(std::move(batch)); },
            .accumulate = [run](detail::BatchCall& call) { run->accumulate(call); }};
  }

  std::shared_ptr<State> state_;
};

}  // namespace batchrpc
