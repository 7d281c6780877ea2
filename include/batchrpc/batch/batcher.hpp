#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/batch/batch_core.hpp"
#include "batchrpc/batch/batch_form.hpp"
#include "batchrpc/batch/batch_options.hpp"
#include "batchrpc/batch/batch_rules.hpp"
#include "batchrpc/batch/batch_run.hpp"
#include "batchrpc/batch/batch_statistics.hpp"
#include "batchrpc/batch/reducer.hpp"
#include "batchrpc/batch/row_memory.hpp"
#include "batchrpc/batch/typed_call.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc {

/// How one call of this process is made; a peer's has its CallOptions.
struct BatchCallOptions {
  /// A row that has not started by then fails with TimedOut; zero: it waits for ever, or as long as
  /// the call does that the calling thread is answering.
  Duration timeout{};
  /// Takes the row back: one that has not started fails with Cancelled.
  std::stop_token stop{};
};

namespace detail {

/// What gives rows of type T memory to be received into; nothing does for most types.
struct NoReceiver {};
template <class T>
struct ReceiverOf {
  using type = NoReceiver;
  using Announced = T;
};
template <class T>
requires requires { typename BatchForm<T>::Receiver; }
struct ReceiverOf<T> {
  using type = typename BatchForm<T>::Receiver;
  using Announced = typename BatchForm<T>::Announced;
};

/// What the copies of one batcher share.
template <class R, class... Args>
struct BatcherState {
  BatchRules<Args...> rules;
  std::shared_ptr<BatchCore> core;
  std::tuple<typename ReceiverOf<Args>::type...> receivers;
  bool reduces = false;
  mutable std::atomic<std::uint64_t> next_ticket{1};
};

}  // namespace detail

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
  using Call = detail::TypedCall<R, Args...>;

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
    return submit<R>(*state_, options, detail::kOfOne, std::tuple<Args...>(std::move(args)...));
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
      return submit<ManyRows<R>>(*state_, options, detail::kOfMany,
                                 std::tuple<ManyRows<Args>...>(std::move(rows)...));
    }
    /// For a node.
    /// @{
    void exposed_on(const Host& host) const { state_->core->exposed_on(host); }
    void take_call(detail::IncomingCall&& call) const {
      Batcher::take<ManyRows<R>, ManyRows<Args>...>(state_, detail::kOfMany, std::move(call));
    }
    /// @}

   private:
    friend class Batcher;
    explicit Many(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };
  [[nodiscard]] Many many() const requires(sizeof...(Args) > 0) { return Many(state_); }

  /// Starts what waits, as soon as the handler is free.
  void flush() const { state_->core->flush(); }
  /// Starts no batch until resume(); rows wait, and those that run go on.
  void pause() const { state_->core->pause(); }
  /// Ends a pause.
  void resume() const { state_->core->resume(); }
  /// New rows fail with ShutDown; those that wait do, too, or run now. The future is ready when
  /// none waits or runs any more.
  Future<void> close(BatchClose how = BatchClose::fail) const { return state_->core->close(how); }

  /// With BatchOptions::all_callers: that this peer will call, so that the first batch waits for it
  /// already. One that is not there is not waited for.
  void expect(const std::string& peer) const { state_->core->expect(peer); }

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
  /// end of the first node ends it.
  void exposed_on(const Host& host) const { state_->core->exposed_on(host); }
  /// By a node: a peer's call.
  void take_call(detail::IncomingCall&& call) const {
    take<R, Args...>(state_, detail::kOfOne, std::move(call));
  }
  /// By a node: such a call is coming in.
  [[nodiscard]] detail::Reception announce(
      Decoder& arguments, const std::shared_ptr<detail::TransferGate>& gate) const {
    using Announced =
        detail::WireSignature<R, std::tuple<typename detail::ReceiverOf<Args>::Announced...>>;
    const auto row = Announced::decode(arguments);
    std::size_t bytes = 0;
    auto parts = parts_of(row, bytes, std::index_sequence_for<Args...>{});
    if (bytes == 0) return {};
    detail::Reception reception;
    reception.kept = state_->core->expect_transfer(bytes, gate, reception.held);
    reception.target = detail::RowMemories::target(std::move(parts));
    return reception;
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
              .can_pad = kCopyable,
              .can_repeat = kCopyable};
    }
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

  template <class Announced, std::size_t... I>
  std::vector<detail::RowMemories::Part> parts_of(const Announced& row, std::size_t& bytes,
                                                  std::index_sequence<I...>) const {
    std::vector<detail::RowMemories::Part> parts;
    (add_part<Args>(std::get<I>(row), std::get<I>(state_->receivers), parts), ...);
    for (const auto& part : parts)
      bytes += part.payload.bytes;
    return parts;
  }
  template <class T, class Announced, class Receiver>
  void add_part(const Announced& row, [[maybe_unused]] const Receiver& receiver,
                std::vector<detail::RowMemories::Part>& parts) const {
    if constexpr (requires { BatchForm<T>::announced(row); }) {
      const detail::AnnouncedPayload payload = BatchForm<T>::announced(row);
      if (payload.bytes == 0) return;
      parts.push_back({payload, [receiver, payload, state = std::weak_ptr(state_)] {
                         const auto alive = state.lock();
                         if (!alive) return detail::RowMemory();
                         // A reducer's rows lie alone, in memory that the next ones use again.
                         const auto options = alive->core->options();
                         return receiver.take(payload.bytes, alive->reduces ? 1 : options->max_size,
                                              options->device);
                       }});
    }
  }

  // Of a call of this process.
  template <class Value, class Kind, class Arguments>
  static Future<Value> submit(const State& state, const BatchCallOptions& options, Kind kind,
                              Arguments&& arguments) {
    using Made = detail::AnsweredCall<detail::LocalReply<Value>, R, Args...>;
    auto call = std::make_unique<Made>(kind, std::move(arguments));
    Future<Value> future = call->reply.get_future();
    if (options.timeout != Duration::zero()) call->timeout = options.timeout;
    if (options.stop.stop_possible()) {
      call->ticket = state.next_ticket.fetch_add(1, std::memory_order_relaxed);
      call->on_stop.emplace(options.stop,
                            [core = std::weak_ptr(state.core), ticket = call->ticket] {
                              if (const auto alive = core.lock()) alive->cancel(ticket);
                            });
    }
    const std::uint64_t ticket = call->ticket;
    enter(state, std::move(call));
    if (options.stop.stop_requested()) state.core->cancel(ticket);
    return future;
  }

  // Of a peer's call.
  template <class Value, class... Wire, class Kind>
  static void take(const std::shared_ptr<State>& state, Kind kind,
                   detail::IncomingCall&& incoming) noexcept {
    using Signature = detail::WireSignature<Value, std::tuple<Wire...>>;
    using Made = detail::AnsweredCall<detail::RemoteReply<Value>, R, Args...>;
    try {
      incoming.keep();
      Decoder decoder = incoming.arguments();
      auto arguments = Signature::decode(decoder);
      const std::size_t bytes = incoming.bytes();
      const CallContext context = incoming.context();
      auto call = std::make_unique<Made>(kind, std::move(arguments), std::move(incoming), state);
      call->caller = context.shared_caller();
      call->deadline = context.deadline();
      call->bytes = bytes;
      const detail::ContextScope scope(context);
      enter(*state, std::move(call));
    } catch (...) {
      incoming.fail(std::current_exception());
    }
  }

  template <class Made>
  static void enter(const State& state, std::unique_ptr<Made> made) {
    std::unique_ptr<detail::BatchCall> call = std::move(made);
    std::exception_ptr refused;
    try {
      apply_rules(state.rules, static_cast<Call&>(*call));
    } catch (...) {
      refused = std::current_exception();
      state.core->count_refused(call->rows);
    }
    if (!refused) refused = state.core->add(call);
    if (call) call->fail(refused, false);
  }

  static void apply_rules(const BatchRules<Args...>& rules, Call& call) {
    if constexpr (sizeof...(Args) > 0) {
      if (!call.of_one) call.rows = rows_of(call.many());
    }
    if (call.bytes == 0) call.bytes = bytes_of(call);
    std::string kind = detail::kind_of(call);
    if (!rules.key) call.key = std::move(kind);
    if (!rules.check && !rules.key && !rules.priority) return;
    if (call.of_one) {
      std::apply([&](const Args&... row) { apply_to_row(rules, call, true, row...); }, call.one());
      return;
    }
    if constexpr (sizeof...(Args) > 0) {
      for (std::size_t i = 0; i < call.rows; ++i) {
        std::apply(
            [&](const auto&... rows) {
              apply_to_row(rules, call, i == 0, BatchForm<Args>::row(rows, i)...);
            },
            call.many());
      }
    }
  }
  static void apply_to_row(const BatchRules<Args...>& rules, Call& call, bool first,
                           const Args&... row) {
    if (rules.check) rules.check(row...);
    if (rules.key) {
      std::string key = std::move(rules.key(row...).text);
      if (!first && key != call.key) {
        throw InvalidArgument("the rows of one call have different keys (BatchRules::key): '" +
                              call.key + "' and '" + key + "'");
      }
      call.key = std::move(key);
    }
    if (rules.priority) {
      const int priority = rules.priority(row...);
      call.priority = first ? priority : std::max(call.priority, priority);
    }
  }

  template <class Columns>
  static std::size_t rows_of(const Columns& many) {
    return std::apply(
        [](const auto&... column) {
          const std::size_t counts[] = {BatchForm<Args>::rows(column)...};
          for (const std::size_t count : counts) {
            if (count == counts[0]) continue;
            throw InvalidArgument("a call of many rows has " + std::to_string(counts[0]) + " and " +
                                  std::to_string(count) + " of them in its arguments");
          }
          if (counts[0] == 0) throw InvalidArgument("a call of many rows has none");
          return counts[0];
        },
        many);
  }
  static std::size_t bytes_of(Call& call) {
    if (call.of_one) {
      return std::apply(
          [](const Args&... row) { return (std::size_t{1} + ... + BatchForm<Args>::bytes(row)); },
          call.one());
    }
    if constexpr (sizeof...(Args) > 0) {
      return std::apply(
          [](const auto&... rows) { return (BatchForm<Args>::bytes_of_all(rows) + ...); },
          call.many());
    }
    return 1;
  }

  std::shared_ptr<State> state_;
};

}  // namespace batchrpc
