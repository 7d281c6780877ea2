#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/call/argument_check.hpp"
#include "batchrpc/call/caller.hpp"
#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/rref/object_functions.hpp"
#include "batchrpc/rref/reference.hpp"
#include "batchrpc/rref/rref_report.hpp"

namespace batchrpc {

/// A handle to an object that lives on one node, its owner, and may be used from all. Made by
/// Node::create or Node::own, copied, passed as an argument, returned as a result.
///
/// The object lives while a handle to it does, anywhere; then its owner destroys it. Its methods
/// run one at a time, after the constructor. Those that one thread calls on one handle start in the
/// order in which it called them, however large the arguments; those of different nodes in the
/// order in which they have arrived as a whole. A method that returns a Future makes room for the
/// next when it returns, not when the future is ready. If the constructor throws, every call fails
/// with what it threw. What may be created and called is what the owner has exposed with
/// Node::expose_class and Node::expose.
///
/// Thread-safe like a shared_ptr: copies may be used on several threads, one handle on one thread
/// at a time.
///
/// Calls fail as Node::call does, and beside that with OwnerLost (the owner has ended, or was
/// restarted: there is no object any more), RRefExpired (this node was out of the owner's reach for
/// longer than NodeOptions::rref_lease, and the object is gone), InvalidArgument (the object is no
/// T), and NotFound (the object's creation never came to its owner, or failed there); none of them
/// has run then. When the owner dies, calls end with PeerLost or NotSent, and with OwnerLost once
/// another incarnation of it is known.
template <class T>
class RRef {
 public:
  using element_type = T;

  /// Refers to nothing.
  RRef() noexcept = default;

  /// To the same object as one of its base classes. The owner must know that it may be used so:
  /// Node::expose_class<Derived(...), Base>(), or conversion of a handle there.
  template <class Derived>
  requires(std::is_base_of_v<T, Derived> && !std::is_same_v<T, Derived>)
      RRef(const RRef<Derived>& other)  // NOLINT: implicit
      : reference_(other.reference_) {
    if (reference_ && reference_->is_owner()) {
      detail::allow_as(reference_->node(), detail::class_name<Derived>(), detail::class_name<T>(),
                       &detail::upcast<Derived, T>);
    }
  }

  /// Whether it refers to an object.
  [[nodiscard]] explicit operator bool() const noexcept { return reference_ != nullptr; }

  /// The name of the node where the object lives. Throws InvalidArgument when empty, as do all
  /// below.
  [[nodiscard]] const std::string& owner() const { return get().owner(); }
  /// Whether the object lives in the node that this handle came to, or was made in.
  [[nodiscard]] bool is_owner() const { return get().is_owner(); }

  /// On the owner, the object itself, which lives as long as what is returned does. Throws
  /// InvalidArgument elsewhere and where the object is no T, NotFound before it is constructed,
  /// what its constructor threw, ShutDown after the node's end, and OwnerLost where it was of the
  /// node's former self, before a restart.
  [[nodiscard]] std::shared_ptr<T> local() const {
    return std::static_pointer_cast<T>(get().local(detail::class_name<T>()));
  }

  /// Calls a method of the object, or of one of its base classes, as Node::call does.
  template <auto M, class... Args>
  auto call(Args&&... args) const {
    return call_with<M>(CallOptions{}, std::forward<Args>(args)...);
  }
  /// The same with a time-out of its own, and retries, which do not keep the order of calls.
  template <auto M, class... Args>
  auto call_with(const CallOptions& options, Args&&... args) const {
    using Traits = detail::FunctionTraits<decltype(M)>;
    check_class<M>();
    return send<typename Traits::Result>(detail::method_name(detail::function_name<M>()), options,
                                         static_cast<typename Traits::Arguments*>(nullptr),
                                         std::forward<Args>(args)...);
  }
  /// The same of a method that has a name: `handle.call<int(int)>("add", 1)` (Node::expose_as).
  template <class Function, class... Args>
  requires std::is_function_v<Function>
  auto call(std::string_view method, Args&&... args) const {
    return call_with<Function>(CallOptions{}, method, std::forward<Args>(args)...);
  }
  /// The same with a time-out of its own.
  template <class Function, class... Args>
  requires std::is_function_v<Function>
  auto call_with(const CallOptions& options, std::string_view method, Args&&... args) const {
    using Traits = detail::FunctionTraits<Function>;
    return send<typename Traits::Result>(detail::method_name(method), options,
                                         static_cast<typename Traits::Arguments*>(nullptr),
                                         std::forward<Args>(args)...);
  }

  /// Sends a call whose result nobody waits for, as Node::notify does, in order with other calls.
  template <auto M, class... Args>
  void notify(Args&&... args) const {
    using Traits = detail::FunctionTraits<decltype(M)>;
    check_class<M>();
    send_notice<typename Traits::Result>(detail::method_name(detail::function_name<M>()),
                                         static_cast<typename Traits::Arguments*>(nullptr),
                                         std::forward<Args>(args)...);
  }
  /// The same of a method that has a name.
  template <class Function, class... Args>
  requires std::is_function_v<Function>
  void notify(std::string_view method, Args&&... args) const {
    using Traits = detail::FunctionTraits<Function>;
    send_notice<typename Traits::Result>(detail::method_name(method),
                                         static_cast<typename Traits::Arguments*>(nullptr),
                                         std::forward<Args>(args)...);
  }

  /// A handle to the object that the method `M` makes, at once: it stays with the owner, which has
  /// exposed M with Node::expose_factory. Methods may be called on the handle at once. They fail as
  /// those of Node::create do, and with the error of this object, where that could not be made.
  template <auto M, class... Args>
  auto create(Args&&... args) const;

  /// Ready when the object is constructed; fails with what its constructor threw, and as call()
  /// does.
  [[nodiscard]] Future<void> ready() const {
    return send_to<void, std::tuple<>>({detail::kReady, detail::kShownReady}, CallOptions{});
  }

  /// A copy of the object, of a class that can travel; fails as call() does.
  [[nodiscard]] Future<T> to_here() const {
    return send_to<T, std::tuple<>>({detail::value_name<T>()}, CallOptions{});
  }

  /// Whether both refer to one object.
  friend bool operator==(const RRef& a, const RRef& b) noexcept {
    if (!a.reference_ || !b.reference_) return a.reference_ == b.reference_;
    return a.reference_->object() == b.reference_->object();
  }

  /// For parts of the library: what is behind it; throws InvalidArgument when empty.
  [[nodiscard]] detail::Reference& reference() const { return get(); }

 private:
  friend class Node;
  template <class Other>
  friend class RRef;
  friend struct Codec<RRef>;
  friend struct std::hash<RRef>;

  explicit RRef(std::shared_ptr<detail::Reference> reference) noexcept
      : reference_(std::move(reference)) {}

  [[nodiscard]] detail::Reference& get() const {
    if (!reference_) throw InvalidArgument("this RRef refers to nothing");
    return *reference_;
  }

  template <auto M>
  static constexpr void check_class() {
    using Class = std::remove_const_t<typename detail::FunctionTraits<decltype(M)>::Class>;
    static_assert(std::is_base_of_v<Class, T>,
                  "the method belongs to another class; a method of a derived class is called on "
                  "an RRef to that");
  }

  template <class R, class... Params, class... Args>
  Future<detail::Received<R>> send(const std::string& name, const CallOptions& options,
                                   const std::tuple<Params...>* /*types*/, Args&&... args) const {
    detail::Takes<Params...>::template check<Args...>();
    return send_to<R, std::tuple<Params...>>({name}, options, std::forward<Args>(args)...);
  }

  // A function's name on the wire, and as people know it where that does not follow from it.
  struct Name {
    std::string_view text;
    std::string_view shown{};
  };
  // The object's id goes before the arguments.
  template <class R, class Parameters, class... Args>
  Future<detail::Received<R>> send_to(const Name& name, const CallOptions& options,
                                      Args&&... args) const {
    const auto& reference = get();
    return [&]<class... Params>(const std::tuple<Params...>* /*types*/) {
      const auto key =
          detail::function_key(name.text, signature<R, detail::ObjectId, Params...>(), name.shown);
      return detail::send_call<R, detail::ObjectId, Params...>(
          submitter(), key, detail::outgoing(options, reference.node().get()), reference.object(),
          std::forward<Args>(args)...);
    }(static_cast<Parameters*>(nullptr));
  }

  template <class R, class... Params, class... Args>
  void send_notice(const std::string& name, const std::tuple<Params...>* /*types*/,
                   Args&&... args) const {
    detail::Takes<Params...>::template check<Args...>();
    const auto key = detail::function_key(name, signature<R, detail::ObjectId, Params...>());
    [&](const Params&... arguments) {
      auto how = detail::outgoing(CallOptions{}, get().node().get());
      const detail::EncoderLease encoder;
      encode_struct<detail::ObjectId, Params...>(*encoder, wire::kBodyPointer, get().object(),
                                                 arguments...);
      // Payloads may come later than the release of this handle, which the call then holds back.
      if ((*encoder).payloads().empty()) {
        detail::send_unanswered(submitter(), key, *encoder, std::move(how));
      } else {
        detail::send_unheard(submitter(), key, *encoder, std::move(how));
      }
    }(std::forward<Args>(args)...);
  }

  [[nodiscard]] auto submitter() const {
    return [&reference = get()](const detail::FunctionKey& function, detail::OutgoingOptions&& how,
                                Encoder& encoder, detail::ReplyHandler&& handler) {
      reference.submit(function, std::move(how), encoder, std::move(handler));
    };
  }

  std::shared_ptr<detail::Reference> reference_;
};

/// A handle travels as the names of owner and object, with a reference of its own.
template <class T>
struct Codec<RRef<T>> {
  using Wire = detail::WireReference;
  static Wire encode(const RRef<T>& handle, Encoder& encoder) {
    return handle ? handle.reference_->fork(encoder) : Wire{};
  }
  static RRef<T> decode(Wire&& wire, Decoder& /*decoder*/) {
    if (wire.owner.empty()) return {};
    return RRef<T>(detail::Reference::received(wire));
  }
};

template <class T>
template <auto M, class... Args>
auto RRef<T>::create(Args&&... args) const {
  using Traits = detail::FunctionTraits<decltype(M)>;
  using Made = typename detail::MadeObject<typename Traits::Result>::Class;
  check_class<M>();
  auto made = detail::Reference::to_new_object(get().node(), owner());
  const auto send_as = [&]<class... Params>(const std::tuple<Params...>* /*types*/) {
    detail::Takes<Params...>::template check<Args...>();
    return send_to<void, std::tuple<detail::ObjectId, Params...>>(
        {detail::factory_name<M>()}, CallOptions{.detached = true}, made->object(),
        std::forward<Args>(args)...);
  };
  send_as(static_cast<typename Traits::Arguments*>(nullptr)).then([made](Result<void> created) {
    if (!created) made->creation_failed(created.error(), detail::function_name<M>());
  });
  return RRef<Made>(std::move(made));
}

}  // namespace batchrpc

template <class T>
struct std::hash<batchrpc::RRef<T>> {
  std::size_t operator()(const batchrpc::RRef<T>& handle) const noexcept {
    if (!handle) return 0;
    return batchrpc::detail::ObjectIdHash()(handle.reference_->object());
  }
};
