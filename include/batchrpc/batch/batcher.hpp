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
#include "batchrpc/batch/batch_statistics.hpp"
#include "batchrpc/batch/batch_traits.hpp"
#include "batchrpc/batch/batcher_state.hpp"
#include "batchrpc/batch/handler_check.hpp"
#include "batchrpc/batch/reducer.hpp"
#include "batchrpc/batch/typed_run.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc {

template <class Function>
class Batcher;

/// Gathers calls into batches: one run of the handler answers them all, and each caller gets its
/// row of the result.
///
///     batchrpc::Batcher<float(float)> squares({.max_size = 64}, [](std::vector<float> xs) {
///       for (float& x : xs) x *= x;
///       return xs;
///     });
///     node.expose("square", squares);             // for peers
///     batchrpc::Future<float> nine = squares(3);  // for this process
///
/// The handler is a function, a lambda, or a method with its object. For each argument of the
/// function it takes all rows in order of arrival, as a `std::vector` or as a stacked tensor [rows,
/// …] (`batchrpc/torch.hpp`). Its last parameter may be a `const BatchInfo&`.
///
/// The handler returns as many results as there were rows, in the same order. Otherwise every row
/// fails with InvalidArgument. The result may be
///
/// - a `std::vector<R>` or a tensor [rows, …];
/// - a `std::vector<Result<R>>` for one outcome per row;
/// - a ForAll for one result for all rows;
/// - a Future of any of these (a coroutine may take its arguments by reference).
///
/// If the handler throws, its rows fail with that error, and the next batch runs as usual.
/// `reduce()` makes a handler that takes rows one by one.
///
/// A batcher belongs to the first node on which it is exposed. It uses that node's clock and
/// workers, its groups refer to that node's peers, and it ends with that node. Other nodes on which
/// it is exposed pass their calls to it. A row of this process that comes before any node settles
/// that it runs without one. The lock of ExposeOptions::exclusive belongs to the first node, too:
/// another one is refused with InvalidArgument.
///
/// Copies are handles of the same batcher. When the last handle is destroyed, waiting rows fail
/// with ShutDown; a peer's call keeps a handle until it is done. Thread-safe. See docs/batching.md.
template <class R, class... Args>
class Batcher<R(Args...)> {
  static_assert(!std::is_void_v<R>,
                "a batcher's function must not return void: its callers wait for a result");
  static_assert((std::is_same_v<Args, std::remove_cvref_t<Args>> && ...),
                "the arguments of a batcher's function must be values, not references");

  using State = detail::BatcherState<R, Args...>;

 public:
  /// Throws InvalidArgument if an option is out of range, or does not suit these types.
  template <class Handler>
  requires std::is_void_v<detail::WhyNoHandler<Handler, R, Args...>> Batcher(
      BatchOptions options, Handler handler, BatchRules<Args...> rules = {})
      : state_(std::make_shared<State>()) {
    state_->rules = std::move(rules);
    state_->core = detail::BatchCore::make(std::move(options), work(std::move(handler)));
  }
  /// The same with a method. `object` is a pointer to its object; a shared pointer is kept.
  template <class Method, class Object>
  requires std::is_member_function_pointer_v<Method> Batcher(BatchOptions options, Method method,
                                                             Object object,
                                                             BatchRules<Args...> rules = {})
      : Batcher(std::move(options), std::bind_front(method, std::move(object)), std::move(rules)) {}
  /// @cond
  template <class Handler, class Why = detail::WhyNoHandler<Handler, R, Args...>>
  requires(!std::is_void_v<Why>)
      __attribute__((unavailable("a batcher cannot have this handler. `Why` names the mistake "
                                 "(batchrpc/batch/handler_check.hpp)")))
      Batcher(BatchOptions options, Handler handler, BatchRules<Args...> rules = {});
  /// @endcond

  /// Queues a row. Its future gets the row's result or the handler's error. If the row never ran,
  /// it fails with Overloaded, InvalidArgument, ShutDown, TimedOut or Cancelled.
  Future<R> operator()(Args... args) const {
    return state_->template submit<R>({}, detail::kOfOne, std::tuple<Args...>(std::move(args)...));
  }
  /// Returns a callable that does the same with options: `squares.with({.timeout = 2s})(3)`. It is
  /// a handle of the batcher. To expose it makes an ordinary function, whose rows count as those of
  /// this process: expose the batcher itself for peers.
  [[nodiscard]] auto with(BatchCallOptions options) const {
    return [state = state_, options = std::move(options)](Args... args) -> Future<R> {
      return state->template submit<R>(options, detail::kOfOne,
                                       std::tuple<Args...>(std::move(args)...));
    };
  }

  /// For callers of many rows at once. Takes `std::vector`s or tensors [k, …], all with the same k,
  /// and returns the k results. The rows stay together, in one batch with other callers' rows.
  /// Expose it under a name of its own:
  ///
  ///     node.expose("squares", squares.many());
  class Many {
   public:
    Future<ManyRows<R>> operator()(ManyRows<Args>... rows) const {
      return state_->template submit<ManyRows<R>>(
          {}, detail::kOfMany, std::tuple<ManyRows<Args>...>(std::move(rows)...));
    }
    /// Returns a callable that does the same with options.
    [[nodiscard]] auto with(BatchCallOptions options) const {
      return [state = state_,
              options = std::move(options)](ManyRows<Args>... rows) -> Future<ManyRows<R>> {
        return state->template submit<ManyRows<R>>(
            options, detail::kOfMany, std::tuple<ManyRows<Args>...>(std::move(rows)...));
      };
    }

   private:
    friend struct detail::HostedAccess;
    void exposed_on(const std::shared_ptr<Host>& host) const { state_->core->exposed_on(host); }
    void take_call(detail::RunningCall&& call) const {
      state_->template take<ManyRows<R>, ManyRows<Args>...>(detail::kOfMany, detail::Before<>{},
                                                            std::move(call), nullptr);
    }
    [[nodiscard]] detail::ReceivePlan announce(
        Decoder& arguments, const std::shared_ptr<detail::TransferGate>& gate) const {
      return state_->announce(detail::kOfMany, detail::Before<>{}, arguments, gate);
    }

    friend class Batcher;
    explicit Many(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };
  [[nodiscard]] Many many() const requires(sizeof...(Args) > 0) { return Many(state_); }

  /// Starts the waiting rows as soon as the handler is free. Rows that are held back (OnFull::wait)
  /// start as soon as there is room.
  void flush() const { state_->core->flush(); }
  /// Starts no batch until resume(). Rows wait; batches that are running continue.
  void pause() const { state_->core->pause(); }
  /// Ends a pause.
  void resume() const { state_->core->resume(); }
  /// Closes the batcher: new rows fail with ShutDown; waiting rows fail too, or run now. The future
  /// is ready when no row waits or runs any more and all rows are completed. So do not wait for it
  /// in the handler or in a row's callback. (Callbacks that a thread postpones because it is inside
  /// another one may run later.)
  Future<void> close(BatchClose how = BatchClose::fail) const { return state_->core->close(how); }

  /// Returns the options in force.
  [[nodiscard]] BatchOptions options() const { return *state_->core->options(); }
  /// Changes the options, from the next batch on. Throws InvalidArgument that names an option that
  /// is out of range or cannot be changed; then nothing changes.
  void set_options(BatchOptions options) const { state_->core->set_options(std::move(options)); }

  /// Returns the statistics so far.
  [[nodiscard]] BatchStatistics statistics() const { return state_->core->statistics(); }

 private:
  friend struct detail::HostedAccess;

  // A node calls these, by detail::HostedAccess.
  void exposed_on(const std::shared_ptr<Host>& host) const { state_->core->exposed_on(host); }
  template <class... First>
  void take_call(detail::RunningCall&& call, std::shared_ptr<const void> owner = nullptr) const {
    state_->template take<R, Args...>(detail::kOfOne, detail::Before<First...>{}, std::move(call),
                                      std::move(owner));
  }
  template <class... First>
  [[nodiscard]] detail::ReceivePlan announce(
      Decoder& arguments, const std::shared_ptr<detail::TransferGate>& gate) const {
    return state_->announce(detail::kOfOne, detail::Before<First...>{}, arguments, gate);
  }

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
                    using Run = detail::HandlerRun<Kept, R, Args...>;
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
          "BatchRules::key and priority do not work with a reducer: it has one batch at a time");
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
