#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/argument_check.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/node/node.hpp"
#include "batchrpc/rref/rref.hpp"
#include "batchrpc/torch/tensor.hpp"

namespace batchrpc {
namespace detail {

/// Throws InvalidArgument unless bytes can be received directly into `out`.
BATCHRPC_EXPORT void require_receiving(const at::Tensor& out);
/// Offers the memory of `out` for the tensor of a reply, and keeps it alive.
[[nodiscard]] BATCHRPC_EXPORT PayloadTarget into_tensor(at::Tensor out);
/// The future is ready when `out` holds the reply's tensor.
[[nodiscard]] BATCHRPC_EXPORT Pending<void> receive_into(at::Tensor out);

// `submit(key, options, encoder, handler)` sends the call.
template <class Traits, class Submit, class... Params, class... Args>
Future<void> call_into_typed(const Submit& submit, const FunctionKey& function,
                             OutgoingOptions&& how, const at::Tensor& out,
                             const std::tuple<Params...>* /*types*/, Args&&... args) {
  static_assert(std::same_as<typename Traits::Result, at::Tensor>,
                "call_into() receives the result of a function that returns one at::Tensor");
  Takes<Params...>::template check<Args...>();
  try {
    require_receiving(out);
    const EncoderLease encoder;
    encode_struct<Params...>(*encoder, wire::kBodyPointer, std::forward<Args>(args)...);
    how.payload_target = std::make_unique<PayloadTarget>(into_tensor(out));
    Pending<void> pending = receive_into(out);
    submit(function, std::move(how), *encoder, std::move(pending.handler));
    return std::move(pending.future);
  } catch (...) {
    return make_failed_future<void>(std::current_exception());
  }
}

inline auto submit_to(const Node& node, PeerRef peer) {
  return [&node, peer](const FunctionKey& function, OutgoingOptions&& options, Encoder& encoder,
                       ReplyHandler&& handler) {
    node.submit(peer, function, std::move(options), encoder, std::move(handler));
  };
}

template <class Traits>
constexpr FunctionKey key_of_function(std::string_view name) {
  return function_key(name,
                      CallSignature<typename Traits::Result, typename Traits::Arguments>::text());
}

}  // namespace detail

/// Calls a function that returns a tensor, and receives that tensor into `out`. A large tensor
/// comes straight from the socket, without a copy and without an allocation.
///
///     at::Tensor weights = at::empty({1024, 1024});  // again and again
///     batchrpc::call_into<&fetch>(node, weights, "ps", layer).get();
///
/// `out` must be dense, row-major, on the CPU, and of the result's shape and type; nothing is
/// converted. Its autograd history does not change (as under `no_grad`), but its version counter
/// counts the write. Neither read nor write `out` from the call until the future has completed.
///
/// The call keeps the memory of `out` alive until no late reply can be written into it, even after
/// a time-out. After a call has failed with TimedOut, do not use `out` for another call: the late
/// reply may still arrive in it.
///
/// All errors are in the future: those of any call, and InvalidArgument. If `out` cannot receive,
/// `may_have_run()` is false. If the result is undefined or has another shape or type,
/// `may_have_run()` is true. After an error the contents of `out` are unspecified.
template <auto F, class... Args>
Future<void> call_into_with(const CallOptions& options, const Node& node, const at::Tensor& out,
                            PeerRef peer, Args&&... args) {
  using Traits = detail::FunctionTraits<decltype(F)>;
  return detail::call_into_typed<Traits>(
      detail::submit_to(node, peer), detail::key_of_function<Traits>(detail::function_name<F>()),
      node.outgoing(options), out, static_cast<typename Traits::Arguments*>(nullptr),
      std::forward<Args>(args)...);
}
/// The same with the node's default options.
template <auto F, class... Args>
Future<void> call_into(const Node& node, const at::Tensor& out, PeerRef peer, Args&&... args) {
  return call_into_with<F>(CallOptions{}, node, out, peer, std::forward<Args>(args)...);
}

/// The same for a function given by name:
/// `call_into<at::Tensor(int)>(node, weights, "ps", "fetch", layer)`.
template <class Function, class... Args>
requires std::is_function_v<Function> Future<void> call_into_with(
    const CallOptions& options, const Node& node, const at::Tensor& out, PeerRef peer,
    std::string_view function, Args&&... args) {
  using Traits = detail::FunctionTraits<Function>;
  return detail::call_into_typed<Traits>(
      detail::submit_to(node, peer), detail::key_of_function<Traits>(function),
      node.outgoing(options), out, static_cast<typename Traits::Arguments*>(nullptr),
      std::forward<Args>(args)...);
}
/// The same by name, with the node's default options.
template <class Function, class... Args>
requires std::is_function_v<Function> Future<void> call_into(const Node& node,
                                                             const at::Tensor& out, PeerRef peer,
                                                             std::string_view function,
                                                             Args&&... args) {
  return call_into_with<Function>(CallOptions{}, node, out, peer, function,
                                  std::forward<Args>(args)...);
}

/// The same for a method, or a Batcher, of an object behind an RRef:
/// `call_into<&ParameterServer::update>(server, weights, gradients)`.
template <auto M, class T, class... Args>
requires std::is_member_pointer_v<decltype(M)> Future<void> call_into_with(
    const CallOptions& options, const RRef<T>& handle, const at::Tensor& out, Args&&... args) {
  using Traits = detail::FunctionTraits<decltype(M)>;
  static_assert(std::is_base_of_v<std::remove_const_t<typename Traits::Class>, T>,
                "the method belongs to another class");
  return [&]<class... Params>(const std::tuple<Params...>* /*types*/) {
    using OfObject = detail::Signature<typename Traits::Result, detail::ObjectId, Params...>;
    const std::string name = detail::method_name(detail::function_name<M>());
    const auto submit = [&handle](const detail::FunctionKey& function,
                                  detail::OutgoingOptions&& how, Encoder& encoder,
                                  detail::ReplyHandler&& handler) {
      handle.reference().submit(function, std::move(how), encoder, std::move(handler));
    };
    try {
      return detail::call_into_typed<OfObject>(
          submit, detail::key_of_function<OfObject>(name),
          detail::outgoing(options, handle.reference().node().get()), out,
          static_cast<typename OfObject::Arguments*>(nullptr), handle.reference().object(),
          std::forward<Args>(args)...);
    } catch (...) {  // the handle is empty
      return make_failed_future<void>(std::current_exception());
    }
  }(static_cast<typename Traits::Arguments*>(nullptr));
}
/// The same with the node's default options.
template <auto M, class T, class... Args>
requires std::is_member_pointer_v<decltype(M)> Future<void> call_into(const RRef<T>& handle,
                                                                      const at::Tensor& out,
                                                                      Args&&... args) {
  return call_into_with<M>(CallOptions{}, handle, out, std::forward<Args>(args)...);
}

}  // namespace batchrpc
