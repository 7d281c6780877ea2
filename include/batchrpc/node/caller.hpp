#pragma once

#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/node/exposed.hpp"
#include "batchrpc/node/remote_call.hpp"

namespace batchrpc::detail {

/// Completes `promise` with what a reply holds.
template <class R>
ReplyHandler reply_to(Promise<R> promise) {
  return [promise = std::move(promise)](Reply& reply) mutable {
    if (reply.error) {
      promise.set_error(reply.error);
      return;
    }
    try {
      Decoder decoder(reply.segment, reply.payloads);
      if constexpr (std::is_void_v<R>) {
        decode_result<void>(decoder);
        promise.set_value();
      } else {
        promise.set_value(decode_result<R>(decoder));
      }
    } catch (...) {
      promise.set_error(std::current_exception());
    }
  };
}

/// Encodes the arguments and gives them to `submit(key, options, encoder, handler)`. Nothing is
/// thrown: what goes wrong is in the future.
template <class R, class... Arguments, class Submit>
Future<R> send_call(const Submit& submit, const FunctionKey& key, OutgoingOptions options,
                    std::type_identity_t<const Arguments&>... arguments) {
  try {
    const EncoderLease encoder;
    encode_struct<Arguments...>(*encoder, wire::kBodyPointer, arguments...);
    Promise<R> promise;
    Future<R> future = promise.get_future();
    submit(key, std::move(options), *encoder, reply_to<R>(std::move(promise)));
    return future;
  } catch (...) {
    return make_failed_future<R>(std::current_exception());
  }
}

/// The same without a reply. Throws what goes wrong before the message is queued.
template <class... Arguments, class Submit>
void send_notification(const Submit& submit, const FunctionKey& key,
                       std::type_identity_t<const Arguments&>... arguments) {
  const EncoderLease encoder;
  encode_struct<Arguments...>(*encoder, wire::kBodyPointer, arguments...);
  OutgoingOptions options;
  options.wants_reply = false;
  std::exception_ptr error;
  submit(key, std::move(options), *encoder, [&error](Reply& reply) { error = reply.error; });
  if (error) std::rethrow_exception(error);
}

}  // namespace batchrpc::detail
