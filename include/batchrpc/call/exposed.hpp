#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/call/allow.hpp"
#include "batchrpc/call/function_kind.hpp"
#include "batchrpc/call/function_traits.hpp"
#include "batchrpc/call/host.hpp"
#include "batchrpc/call/receive_plan.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "batchrpc/call/running_call.hpp"
#include "batchrpc/future/async_mutex.hpp"
#include "batchrpc/wire/schema.hpp"
#include "batchrpc/wire/signature.hpp"

namespace batchrpc {

/// How an exposed function runs.
struct ExposeOptions {
  /// Runs the function on the thread that read the message, not on a worker. Set this for functions
  /// that do not block, and compute for some tens of microseconds at most (docs/threading.md). A
  /// Batcher has BatchOptions::short_handler instead.
  bool short_handler = false;
  /// A lock that each call of the function holds while it runs; null: none. Of all functions with
  /// the same lock, also on several nodes of this process, one call runs at a time. The calls of
  /// one node run in the order in which they came. A node takes turns with other nodes, and with
  /// other users of the lock. No thread waits for it.
  ///
  /// The call gets the lock before its arguments are decoded, and holds it until its answer is
  /// made. If the function returns a Future, that is when the future is ready. A handler must not
  /// wait for the lock, or for a call that needs it: it would wait for ever.
  ///
  /// For a Batcher each batch holds the lock, not each call. A batch takes the rows that have come
  /// until it gets the lock. The batcher needs a parallelism of 1, and must not have had a row yet.
  std::shared_ptr<AsyncMutex> exclusive{};
  /// Which nodes may call the function. By default all of them.
  Allow allow{};
};

namespace detail {

/// Reaches the functions by which a callable takes calls itself. A callable such as Batcher keeps
/// them private, and has this as a friend.
struct HostedAccess {
  /// Reports on which node the callable is exposed.
  template <class Callable>
  static auto exposed_on(Callable& callable, const std::shared_ptr<Host>& host)
      -> decltype(callable.exposed_on(host)) {
    return callable.exposed_on(host);
  }
  /// Gives it a call, with the duty to answer it. `First` are the types of arguments before its
  /// own; `owner` is kept until the call is answered. Does not throw. It runs as a short handler,
  /// and decodes the arguments itself.
  template <class... First, class Callable, class... Owner>
  static void take_call(Callable& callable, RunningCall&& call, Owner&&... owner) {
    if constexpr (sizeof...(First) == 0) {
      callable.take_call(std::move(call), std::forward<Owner>(owner)...);
    } else {
      callable.template take_call<First...>(std::move(call), std::forward<Owner>(owner)...);
    }
  }
  /// Announces a call that is arriving: ExposedFunction::announce.
  template <class... First, class Callable>
  requires(sizeof...(First) > 0) static ReceivePlan
      announce(Callable& callable, Decoder& arguments, const std::shared_ptr<TransferGate>& gate) {
    return callable.template announce<First...>(arguments, gate);
  }
  template <class Callable>
  static auto announce(Callable& callable, Decoder& arguments,
                       const std::shared_ptr<TransferGate>& gate)
      -> decltype(callable.announce(arguments, gate)) {
    return callable.announce(arguments, gate);
  }
};

/// A callable that takes calls itself.
template <class Callable>
concept ToldOfHost = requires(Callable& callable, const std::shared_ptr<Host>& host) {
  HostedAccess::exposed_on(callable, host);
};

/// Throws InvalidArgument for an option that a callable which gathers calls cannot use. Such a
/// callable takes each call at once, and runs later.
BATCHRPC_EXPORT void check_gathering(const std::string& name, const ExposeOptions& options);

/// A callable that learns of calls before they are complete (ExposedFunction::announce).
template <class Callable>
concept ToldOfCalls = requires(Callable& callable, Decoder& arguments,
                               const std::shared_ptr<TransferGate>& gate) {
  HostedAccess::announce(callable, arguments, gate);
};

/// An exposed function, as its node keeps it. The calls under way share it.
class BATCHRPC_EXPORT ExposedFunction : public std::enable_shared_from_this<ExposedFunction> {
 public:
  ExposedFunction(std::string function_name, std::string function_signature, ExposeOptions how)
      : name(std::move(function_name)),
        signature(std::move(function_signature)),
        options(std::move(how)) {}
  virtual ~ExposedFunction();

  /// Returns the function that answers a peer's calls by that signature; null: it is not this
  /// function's. Throws BadSignature, which says more. Thread-safe.
  [[nodiscard]] virtual std::shared_ptr<ExposedFunction> with_signature(std::string_view called_as);
  /// Takes the function back: calls under way go on, others do not begin. Thread-safe.
  virtual void take_back() noexcept { taken_back = true; }
  /// Runs the function and answers the call: at once, or later, as a DeferredCall.
  virtual void run(RunningCall& call) noexcept = 0;
  /// Announces a call whose payloads follow. `arguments` has none of them. CallContext::current()
  /// knows the caller. `gate` lets the payloads of a held call come. An exception counts as the
  /// default. It runs on the driving thread, and must not block it.
  [[nodiscard]] virtual ReceivePlan announce(Decoder& arguments,
                                             const std::shared_ptr<TransferGate>& gate);
  /// Returns the Cap'n Proto schema of arguments and result.
  [[nodiscard]] virtual std::string schema() const = 0;
  /// Returns the kind of functions that the function belongs to, by its name. The kind lives for
  /// ever. Null: there is none, or the node knows it.
  [[nodiscard]] virtual const FunctionKind* kind() const noexcept;

  const std::string name;
  const std::string signature;
  const ExposeOptions options;
  std::atomic<bool> taken_back{false};   ///< set by take_back()
  FunctionCounters* counters = nullptr;  ///< the node's, once the function is exposed
  std::string shown{};                   ///< the name for people, once the function is exposed
  bool of_library = false;               ///< whether it is the library's own, once it is exposed
};

/// The signature of a call: its text, its schema, and how its arguments are encoded.
template <class Result, class Arguments>
struct CallSignature;
template <class Result, class... Arguments>
struct CallSignature<Result, std::tuple<Arguments...>> {
  static constexpr std::string_view text() { return signature<Result, Arguments...>(); }
  static std::string schema(std::string_view name) {
    return batchrpc::schema_text<Result, Arguments...>(name);
  }
  static std::tuple<Arguments...> decode(Decoder& decoder) {
    return decode_struct<Arguments...>(decoder, wire::kBodyPointer - 1);
  }
  static void encode(Encoder& encoder, const Arguments&... arguments) {
    encode_struct<Arguments...>(encoder, wire::kBodyPointer, arguments...);
  }
};

/// Encodes a result as a struct of one field, or none for void.
template <class R>
void encode_result(Encoder& encoder, const R& value) {
  encode_struct<R>(encoder, wire::kBodyPointer, value);
}
inline void encode_nothing(Encoder& encoder) { encode_struct<>(encoder, wire::kBodyPointer); }

template <class T>
T decode_result(Decoder& decoder) {
  if constexpr (std::is_void_v<T>) {
    (void)decode_struct<>(decoder, wire::kBodyPointer - 1);
  } else {
    return std::get<0>(decode_struct<T>(decoder, wire::kBodyPointer - 1));
  }
}

class ContextScope {
 public:
  explicit ContextScope(const CallContext& context)
      : outer_(ContextAccess::exchange_current(&context)) {}
  ~ContextScope() { ContextAccess::exchange_current(outer_); }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const CallContext* outer_;
};

/// A callable with its signature.
template <class Callable, class Traits>
class TypedFunction final : public ExposedFunction {
  using Result = typename Traits::Result;
  using Arguments = typename Traits::Arguments;
  using Signature = CallSignature<Result, Arguments>;

 public:
  TypedFunction(std::string function_name, Callable callable, ExposeOptions how)
      : ExposedFunction(std::move(function_name), std::string(Signature::text()), std::move(how)),
        callable_(std::move(callable)) {}

  void run(RunningCall& call) noexcept override {
    if constexpr (Traits::kAsynchronous) {
      run_asynchronously(std::move(call));
    } else {
      run_at_once(call);
    }
  }

  [[nodiscard]] ReceivePlan announce(Decoder& arguments,
                                     const std::shared_ptr<TransferGate>& gate) override {
    if constexpr (ToldOfCalls<Callable>) {
      return HostedAccess::announce(callable_, arguments, gate);
    } else {
      return ExposedFunction::announce(arguments, gate);
    }
  }

  [[nodiscard]] std::string schema() const override { return Signature::schema(name); }

 private:
  void run_at_once(RunningCall& call) noexcept {
    bool began = false;
    try {
      call.own_payloads();
      const EncoderLease encoder;
      {
        const ContextScope scope(call.context());
        Decoder decoder = of_library ? call.library_arguments() : call.arguments();
        Arguments arguments = Signature::decode(decoder);
        began = true;
        if constexpr (std::is_void_v<Result>) {
          std::apply(callable_, std::move(arguments));
          encode_nothing(*encoder);
        } else {
          auto&& result = std::apply(callable_, std::move(arguments));
          // A reference in a result that does not leave would never be given back.
          if (!call.cancelled()) encode_result<Result>(*encoder, result);
        }
      }
      call.reply(*encoder);
    } catch (...) {
      call.fail(std::current_exception(), began);
    }
  }

  // A call that waits for the function's future, as a callback of it. It keeps all that the
  // function may refer to until then: the captures or object, also when the function is taken back
  // or its node ends, a coroutine's reference parameters, and views of the message.
  struct Running final : Callback, Pooled {
    Running(std::shared_ptr<ExposedFunction> function, RunningCall&& running)
        : Callback(&answer, true), call(std::move(running), std::move(function)) {}
    DeferredCall call;  // with the function
    std::optional<Arguments> arguments;
  };

  void run_asynchronously(RunningCall&& call) noexcept {
    auto running = std::make_unique<Running>(this->shared_from_this(), std::move(call));
    try {
      Future<Result> future;
      {
        const ContextScope scope(running->call.context());
        Decoder decoder = running->call.arguments();
        running->arguments.emplace(Signature::decode(decoder));
        future = std::apply(callable_, std::move(*running->arguments));
      }
      if (!future.valid()) throw InvalidArgument("the function returned an empty future");
      FutureAccess::consume(future).release()->add_last(*running.release());
    } catch (...) {
      if (running) running->call.fail(std::current_exception(), running->arguments.has_value());
    }
  }

  static void answer(Callback& self, StateBase& source) noexcept {
    const AmbientScope scope(nullptr);  // not that of the thread that completed the future
    const std::unique_ptr<Running> running(static_cast<Running*>(&self));
    DeferredCall& call = running->call;
    try {
      const auto result = static_cast<State<Result>&>(source).take();
      const EncoderLease encoder;
      if constexpr (std::is_void_v<Result>) {
        result.value();
        encode_nothing(*encoder);
      } else if (!call.cancelled()) {
        encode_result<Result>(*encoder, result.value());
      }
      call.reply(*encoder);
    } catch (...) {
      call.fail(std::current_exception(), true);
    }
  }

  Callable callable_;
};

/// A callable that takes calls itself, with its signature.
template <ToldOfHost Callable, class Traits>
class TypedFunction<Callable, Traits> final : public ExposedFunction {
  using Signature = CallSignature<typename Traits::Result, typename Traits::Arguments>;

 public:
  TypedFunction(std::string function_name, Callable callable, ExposeOptions how)
      : ExposedFunction(std::move(function_name), std::string(Signature::text()), std::move(how)),
        callable_(std::move(callable)) {}

  void run(RunningCall& call) noexcept override {
    HostedAccess::take_call(callable_, std::move(call));
  }
  [[nodiscard]] ReceivePlan announce(Decoder& arguments,
                                     const std::shared_ptr<TransferGate>& gate) override {
    return HostedAccess::announce(callable_, arguments, gate);
  }
  [[nodiscard]] std::string schema() const override { return Signature::schema(name); }

 private:
  Callable callable_;
};

/// Makes the exposed form of a callable. A node shares it; std::make_shared here would cost a
/// program some 40 template instantiations for each of its functions.
template <class Callable, class Traits = FunctionTraits<Callable>>
[[nodiscard]] std::unique_ptr<ExposedFunction> make_exposed(std::string name, Callable callable,
                                                            ExposeOptions how) {
  return std::unique_ptr<ExposedFunction>(
      new TypedFunction<Callable, Traits>(std::move(name), std::move(callable), std::move(how)));
}

}  // namespace detail
}  // namespace batchrpc
