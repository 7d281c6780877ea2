#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/call/call_forms.hpp"
#include "batchrpc/call/caller.hpp"
#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/kept_options.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/rref/object_functions.hpp"
#include "batchrpc/rref/reference.hpp"
#include "batchrpc/rref/rref_report.hpp"

namespace batchrpc {

template <class T>
class RRef;
template <class T>
class RRefCalls;

namespace detail {

struct RRefAccess;

template <class T>
struct ObjectOfHandle<RRef<T>> {
  using type = T;
};
template <class T>
struct ObjectOfHandle<RRefCalls<T>> {
  using type = T;
};

}  // namespace detail

/// A handle to an object that lives on one node, its owner, and can be used from all nodes. It is
/// made by Node::create or Node::own, and can be copied, passed as an argument and returned as a
/// result.
///
/// The object lives as long as any node has a handle to it; then its owner destroys it. Its methods
/// run one at a time, after the constructor. Calls that one thread makes on one handle start in the
/// order in which they were made, however large their arguments are. Calls of different nodes start
/// in the order in which they have fully arrived. A method that returns a Future makes room for the
/// next call when it returns, not when the future is ready. If the constructor throws, every call
/// fails with its error. Only what the owner has exposed with Node::expose_class and Node::expose
/// can be created and called.
///
/// As thread-safe as a shared_ptr: different threads may use copies, but only one thread at a time
/// may use one handle.
///
/// Calls fail as Node::call does. They can also fail with the following errors; the call has then
/// not run:
///
/// - OwnerLost: the owner has ended or was restarted, so the object no longer exists;
/// - RRefExpired: this node was out of the owner's reach for longer than
/// NodeOptions::liveness.rref_lease,
///   and the object no longer exists;
/// - InvalidArgument: the object is not a T;
/// - NotFound: the object's creation never reached its owner, or failed there.
///
/// When the owner dies, calls fail with PeerLost or NotSent. Once another incarnation of the owner
/// is known, they fail with OwnerLost.
///
/// call() calls a method of the object, or of one of its base classes. notify() does so without a
/// result, in order with other calls. By name, methods are those of Node::expose<M>(name).
template <class T>
class RRef : public detail::CallForms<RRef<T>>, public detail::NotifyForms<RRef<T>> {
 public:
  using element_type = T;

  /// Refers to nothing.
  RRef() noexcept = default;

  /// Refers to the same object as one of its base classes. The owner must allow this use, by
  /// Node::expose_class<Derived(...), Base>() or by converting a handle there.
  template <class Derived>
  requires(std::is_base_of_v<T, Derived> && !std::is_same_v<T, Derived>)
      RRef(const RRef<Derived>& other)  // NOLINT: implicit
      : reference_(other.reference_) {
    if (reference_ && reference_->is_owner()) {
      detail::allow_as(reference_->node(), detail::class_name<Derived>(), detail::class_name<T>(),
                       &detail::upcast<Derived, T>);
    }
  }

  /// Returns whether it refers to an object.
  [[nodiscard]] explicit operator bool() const noexcept { return reference_ != nullptr; }

  /// Returns the name of the node where the object lives. Throws InvalidArgument if the handle is
  /// empty, as do all functions below.
  [[nodiscard]] const std::string& owner() const { return get().owner(); }
  /// Returns whether the object lives on the node that received or made this handle.
  [[nodiscard]] bool is_owner() const { return get().is_owner(); }

  /// On the owner, returns a future of the object itself, which keeps it alive. It is ready at once
  /// if the object is constructed. Fails as call() does, and with InvalidArgument on other nodes.
  [[nodiscard]] Future<std::shared_ptr<T>> local() const { return local_with(CallOptions{}); }

  /// Returns what makes calls with these options: `handle.with({.timeout = 2s}).call<&T::get>()`.
  /// What the options refer to (CallOptions::metadata) must outlive the calls, not their futures.
  /// It is a handle too: the object lives as long as it does, and an empty one throws
  /// InvalidArgument.
  [[nodiscard]] RRefCalls<T> with(const CallOptions& options) const { return {*this, options}; }

  /// Returns at once a handle to the object that the method `M` creates. That object stays with the
  /// owner, which must have exposed M with Node::expose_factory. Its methods can be called at once.
  /// They fail as those of Node::create do. If creating this object failed, they fail with the same
  /// error.
  template <auto M, class... Args>
  requires detail::CreatesOn<M, T, Args...>
  auto create(Args&&... args) const {
    return create_with<M>(CallOptions{}, std::forward<Args>(args)...);
  }
  /// @cond
  template <auto M, class... Args,
            class Why = detail::WhyNotCalled<detail::FactoryTraits<M>, T, Args...>>
  requires(!std::is_void_v<Why>) BATCHRPC_NO_CALL detail::Refused create(Args&&... args)
  const;
  /// @endcond

  /// Returns a future that is ready when the object is constructed. It fails with the constructor's
  /// error, and as call() does.
  [[nodiscard]] Future<void> ready() const { return ready_with(CallOptions{}); }

  /// Returns a copy of the object, whose class must be serializable. Fails as call() does.
  [[nodiscard]] Future<T> to_here() const { return to_here_with(CallOptions{}); }

  /// Returns whether both refer to the same object.
  friend bool operator==(const RRef& a, const RRef& b) noexcept {
    if (!a.reference_ || !b.reference_) return a.reference_ == b.reference_;
    return a.reference_->object() == b.reference_->object();
  }

 private:
  friend class Node;
  friend class Peer;
  friend struct detail::RRefAccess;
  friend class RRefCalls<T>;
  friend class detail::CallForms<RRef>;
  friend class detail::NotifyForms<RRef>;
  template <class Other>
  friend class RRef;
  friend struct Codec<RRef>;
  friend struct std::hash<RRef>;

  explicit RRef(std::shared_ptr<detail::Reference> reference) noexcept
      : reference_(std::move(reference)) {}

  [[nodiscard]] detail::Reference& get() const {
    if (!reference_) throw InvalidArgument("this RRef is empty: it refers to no object");
    return *reference_;
  }

  template <auto M, class... Args>
  auto call_function(Args&&... args) const {
    return call_method<M>(CallOptions{}, std::forward<Args>(args)...);
  }
  template <class Function, class... Args>
  auto call_named(std::string_view method, Args&&... args) const {
    return call_by_name<Function>(CallOptions{}, method, std::forward<Args>(args)...);
  }
  template <auto M, class... Args>
  void notify_function(Args&&... args) const {
    using Traits = detail::FunctionTraits<decltype(M)>;
    send_notice<typename Traits::Result>(detail::method_name(detail::function_name<M>()),
                                         static_cast<typename Traits::Arguments*>(nullptr),
                                         std::forward<Args>(args)...);
  }
  template <class Function, class... Args>
  void notify_named(std::string_view method, Args&&... args) const {
    using Traits = detail::FunctionTraits<Function>;
    send_notice<typename Traits::Result>(detail::method_name(method),
                                         static_cast<typename Traits::Arguments*>(nullptr),
                                         std::forward<Args>(args)...);
  }

  template <auto M, class... Args>
  auto create_with(const CallOptions& options, Args&&... args) const;
  template <auto M, class... Args>
  auto call_method(const CallOptions& options, Args&&... args) const {
    using Traits = detail::FunctionTraits<decltype(M)>;
    return send<typename Traits::Result>(detail::method_name(detail::function_name<M>()), options,
                                         static_cast<typename Traits::Arguments*>(nullptr),
                                         std::forward<Args>(args)...);
  }
  template <class Function, class... Args>
  auto call_by_name(const CallOptions& options, std::string_view method, Args&&... args) const {
    using Traits = detail::FunctionTraits<Function>;
    return send<typename Traits::Result>(detail::method_name(method), options,
                                         static_cast<typename Traits::Arguments*>(nullptr),
                                         std::forward<Args>(args)...);
  }
  [[nodiscard]] Future<void> ready_with(const CallOptions& options) const {
    return send_to<void, std::tuple<>>({detail::kReady, detail::kShownReady}, options);
  }
  [[nodiscard]] Future<std::shared_ptr<T>> local_with(const CallOptions& options) const {
    static constexpr std::string_view kClass = detail::class_name<T>();
    try {
      if (auto object = get().local(kClass))
        return make_ready_future(std::static_pointer_cast<T>(std::move(object)));
    } catch (...) {
      return make_failed_future<std::shared_ptr<T>>(std::current_exception());
    }
    return ready_with(options).then(
        [reference = reference_] { return std::static_pointer_cast<T>(reference->local(kClass)); });
  }
  [[nodiscard]] Future<T> to_here_with(const CallOptions& options) const {
    return send_to<T, std::tuple<>>({detail::value_name<T>()}, options);
  }

  template <class R, class... Params, class... Args>
  Future<detail::Received<R>> send(const std::string& name, const CallOptions& options,
                                   const std::tuple<Params...>* /*types*/, Args&&... args) const {
    return send_to<R, std::tuple<Params...>>({name}, options, std::forward<Args>(args)...);
  }

  // A function's name on the wire, and the name shown to users if it differs.
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
    const auto key = detail::function_key(name, signature<R, detail::ObjectId, Params...>());
    [&](const Params&... arguments) {
      auto how = detail::outgoing(CallOptions{}, get().node().get());
      const detail::EncoderLease encoder;
      encode_struct<detail::ObjectId, Params...>(*encoder, wire::kBodyPointer, get().object(),
                                                 arguments...);
      // Payloads may arrive after the release of this handle, so the call delays the release.
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

/// An RRef with the options of the calls that it makes. Made by RRef::with. Retries do not keep the
/// order of calls.
template <class T>
class RRefCalls : public detail::CallForms<RRefCalls<T>> {
 public:
  /// Does what RRef::ready does.
  [[nodiscard]] Future<void> ready() const { return handle_.ready_with(options_.get()); }
  /// Does what RRef::local does.
  [[nodiscard]] Future<std::shared_ptr<T>> local() const {
    return handle_.local_with(options_.get());
  }
  /// Creates an object by a method, as RRef::create does. Of the options, those of Peer::create
  /// apply.
  template <auto M, class... Args>
  requires detail::CreatesOn<M, T, Args...>
  auto create(Args&&... args) const {
    return handle_.template create_with<M>(options_.get(), std::forward<Args>(args)...);
  }
  /// @cond
  template <auto M, class... Args,
            class Why = detail::WhyNotCalled<detail::FactoryTraits<M>, T, Args...>>
  requires(!std::is_void_v<Why>) BATCHRPC_NO_CALL detail::Refused create(Args&&... args)
  const;
  /// @endcond
  /// Does what RRef::to_here does.
  [[nodiscard]] Future<T> to_here() const { return handle_.to_here_with(options_.get()); }

 private:
  friend class RRef<T>;
  friend struct detail::RRefAccess;
  friend class detail::CallForms<RRefCalls>;

  template <auto M, class... Args>
  auto call_function(Args&&... args) const {
    return handle_.template call_method<M>(options_.get(), std::forward<Args>(args)...);
  }
  template <class Function, class... Args>
  auto call_named(std::string_view method, Args&&... args) const {
    return handle_.template call_by_name<Function>(options_.get(), method,
                                                   std::forward<Args>(args)...);
  }

  RRefCalls(const RRef<T>& handle, const CallOptions& options)
      : handle_(handle), options_(options) {}

  RRef<T> handle_;
  detail::KeptOptions options_;
};

namespace detail {

/// What the library's own parts use of a handle, and programs do not.
struct RRefAccess {
  /// Returns the reference behind the handle. Throws InvalidArgument if it is empty.
  template <class T>
  [[nodiscard]] static Reference& reference(const RRef<T>& handle) {
    return handle.get();
  }
  template <class T>
  [[nodiscard]] static Reference& reference(const RRefCalls<T>& calls) {
    return calls.handle_.get();
  }
  /// Returns the options of the calls.
  template <class T>
  [[nodiscard]] static const CallOptions& options(const RRefCalls<T>& calls) noexcept {
    return calls.options_.get();
  }
};

}  // namespace detail

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
auto RRef<T>::create_with(const CallOptions& options, Args&&... args) const {
  using Traits = detail::FunctionTraits<decltype(M)>;
  using Made = typename detail::MadeObject<typename Traits::Result>::Class;
  const CallOptions how = detail::options_of_creation(options);
  auto made = detail::Reference::to_new_object(get().node(), owner());
  const auto send_as = [&]<class... Params>(const std::tuple<Params...>* /*types*/) {
    return send_to<void, std::tuple<detail::ObjectId, Params...>>(
        {detail::factory_name<M>()}, how, made->object(), std::forward<Args>(args)...);
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
