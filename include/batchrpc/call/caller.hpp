#pragma once

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc::detail {

/// What the caller of a function that returns R gets. For a view it is a copy, because the reply is
/// gone when the future is ready.
template <class R>
struct ReceivedResult {
  using type = R;
  static constexpr bool kIsView = false;
};
template <>
struct ReceivedResult<std::string_view> {
  using type = std::string;
  static constexpr bool kIsView = true;
};
template <>
struct ReceivedResult<const char*> : ReceivedResult<std::string_view> {};
template <class T>
struct ReceivedResult<std::span<T>> {
  using type = std::vector<std::remove_const_t<T>>;
  static constexpr bool kIsView = true;
};
template <class R>
using Received = typename ReceivedResult<R>::type;

// Whether T is or contains a view of a message. Recursive types contain themselves.
template <class T, class... Enclosing>
constexpr bool holds_view() {
  if constexpr (ReceivedResult<T>::kIsView) {
    return true;
  } else if constexpr (HasCodec<T> || !HasBuiltin<T> || (std::is_same_v<T, Enclosing> || ...)) {
    return false;
  } else {
    return []<class... Part>(Types<Part...>) {
      return (holds_view<std::remove_cv_t<Part>, T, Enclosing...>() || ...);
    }(typename Builtin<T>::Parts{});
  }
}

/// Returns an exception of the decoding of a reply as an error of a call that has run.
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr as_of_reply(std::exception_ptr thrown);

/// The state of a call's future. It receives the reply itself, so a call needs one allocation.
/// `take(reply)` makes the result, and may throw.
template <class R, class Take>
class PendingReply final : public State<R>, public ReplyReceiver {
 public:
  /// The future has one reference, the call the other.
  explicit PendingReply(Take take) : State<R>(2), take_(std::move(take)) {}

  void receive(Reply& reply) noexcept override {
    try {
      if (reply.error) {
        this->store(std::move(reply.error));
      } else if constexpr (std::is_void_v<R>) {
        take_(reply);
        this->store(Result<void>());
      } else {
        this->store(Result<R>(take_(reply)));
      }
    } catch (...) {
      if (reply.probe != nullptr) end_record(*reply.probe, std::current_exception());
      this->store(as_of_reply(std::current_exception()));
    }
    if (reply.probe != nullptr) end_record(*reply.probe, nullptr);
    this->complete();
  }
  void submitted(SubmittedCall call, bool cancel_when_dropped) noexcept override {
    call_ = std::move(call);
    if (cancel_when_dropped) this->set_cancelled_when_dropped();
  }
  bool cancel() noexcept override { return call_.cancel(); }
  [[nodiscard]] StateBase* state() noexcept override { return this; }

 private:
  SubmittedCall call_;
  [[no_unique_address]] Take take_;
};

/// Returns what a user's options mean for a call that the node makes now, and what goes along with
/// the call. That depends on the options, on the call that the calling thread answers, and on who
/// records the node's calls. Null: there is no node, and nothing goes along.
[[nodiscard]] BATCHRPC_EXPORT OutgoingOptions outgoing(const CallOptions& options, LocalNode* node);

/// A call's future, and the handler that completes it.
template <class R>
struct Pending {
  Future<R> future;
  ReplyHandler handler;
};

template <class R, class Take>
Pending<R> wait_for_reply(Take take) {
  auto* const state = new PendingReply<R, Take>(std::move(take));
  return {FutureAccess::make(Ref<State<R>>(state)), ReplyHandler(*state)};
}

/// Waits for the result in the form that the function's caller gets.
template <class R>
Pending<Received<R>> wait_for_result() {
  static_assert(!holds_view<Received<R>>(),
                "batchrpc: the result contains a view (std::string_view, std::span) into a message "
                "that is destroyed before the future is ready. Return a std::string or std::vector "
                "in its place; only a view that is the whole result is copied for the caller");
  return wait_for_reply<Received<R>>([](const Reply& reply) {
    Decoder decoder(reply.segment, reply.payloads);
    return decode_result<Received<R>>(decoder);
  });
}

/// Converts the arguments to the function's types, encodes them and passes them to `submit(key,
/// options, encoder, handler)`. It throws nothing: the future has any error.
template <class R, class... Params, class Submit, class... Args>
Future<Received<R>> send_call(const Submit& submit, const FunctionKey& key,
                              OutgoingOptions&& options, Args&&... args) {
  try {
    return [&](const Params&... arguments) {
      const EncoderLease encoder;
      encode_struct<Params...>(*encoder, wire::kBodyPointer, arguments...);
      Pending<Received<R>> pending = wait_for_result<R>();
      submit(key, std::move(options), *encoder, std::move(pending.handler));
      return std::move(pending.future);
    }(std::forward<Args>(args)...);
  } catch (...) {
    return make_failed_future<Received<R>>(std::current_exception());
  }
}

/// Stores the error that a notification meets until it is queued.
struct SendingOutcome final : ReplyReceiver {
  void receive(Reply& reply) noexcept override { error = std::move(reply.error); }
  std::exception_ptr error;
};

/// Sends a message whose reply matters only to its delivery hooks (DeliveryHook). `submit` is as in
/// send_call(). Throws the errors that come before the message is queued.
template <class Submit>
void send_unheard(const Submit& submit, const FunctionKey& key, Encoder& encoder,
                  OutgoingOptions options = {}) {
  options.timeout = kNoTimeout;
  options.cancel_when_dropped = false;
  Pending<void> pending = wait_for_reply<void>([](const Reply& /*reply*/) {});
  submit(key, std::move(options), encoder, std::move(pending.handler));
  if (pending.future.ready()) std::move(pending.future).get();
}

/// Sends a message in the same way, without a reply.
template <class Submit>
void send_unanswered(const Submit& submit, const FunctionKey& key, Encoder& encoder,
                     OutgoingOptions options = {}) {
  if (encoder.one_use()) return send_unheard(submit, key, encoder, std::move(options));
  options.wants_reply = false;
  SendingOutcome outcome;
  submit(key, std::move(options), encoder, ReplyHandler(outcome));
  if (outcome.error) std::rethrow_exception(outcome.error);
}

/// Does the same as send_call(), without a reply. Throws the errors that come before the message is
/// queued.
template <class... Arguments, class Submit>
void send_notification(const Submit& submit, const FunctionKey& key, OutgoingOptions&& options,
                       std::type_identity_t<const Arguments&>... arguments) {
  const EncoderLease encoder;
  encode_struct<Arguments...>(*encoder, wire::kBodyPointer, arguments...);
  send_unanswered(submit, key, *encoder, std::move(options));
}

/// Returns the key of a function with these traits that has a name.
template <class Traits>
constexpr FunctionKey key_of(std::string_view name) {
  return function_key(name,
                      CallSignature<typename Traits::Result, typename Traits::Arguments>::text());
}
/// Returns the key of `F`, under its qualified name.
template <auto F>
constexpr FunctionKey key_of() {
  constexpr FunctionKey kKey = key_of<FunctionTraits<decltype(F)>>(function_name<F>());
  return kKey;
}

/// Calls a function with these traits by send_call.
template <class Traits, class Submit, class... Args>
auto call_as(const Submit& submit, const FunctionKey& key, OutgoingOptions&& options,
             Args&&... args) {
  return [&]<class... Params>(const std::tuple<Params...>* /*types*/) {
    return send_call<typename Traits::Result, Params...>(submit, key, std::move(options),
                                                         std::forward<Args>(args)...);
  }(static_cast<typename Traits::Arguments*>(nullptr));
}

/// The same by send_notification.
template <class Traits, class Submit, class... Args>
void notify_as(const Submit& submit, const FunctionKey& key, OutgoingOptions&& options,
               Args&&... args) {
  [&]<class... Params>(const std::tuple<Params...>* /*types*/) {
    send_notification<Params...>(submit, key, std::move(options), std::forward<Args>(args)...);
  }(static_cast<typename Traits::Arguments*>(nullptr));
}

}  // namespace batchrpc::detail
