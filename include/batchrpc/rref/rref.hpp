#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/future/promise.hpp"
#include "batchrpc/node/node.hpp"
#include "batchrpc/rref/reference.hpp"

namespace batchrpc {
namespace detail {

// As printed_name of functions.
template <class T>
constexpr auto printed_type() {
  std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::string_view kMark = "T = ";
  text.remove_prefix(text.find(kMark) + kMark.size());
  return text.substr(0, text.find_first_of(";]"));
}

/// The qualified name of a class.
template <class T>
constexpr std::string_view class_name() {
  constexpr std::string_view kName = printed_type<T>();
  static_assert(is_plain_name(kName),
                "this class has no name that another program could know: name it, outside of any "
                "anonymous namespace or template");
  return kName;
}

template <class T>
std::string create_name() {
  return "batchrpc.create:" + std::string(class_name<T>());
}
template <class T>
std::string value_name() {
  return "batchrpc.value:" + std::string(class_name<T>());
}
template <auto M>
std::string method_name() {
  return "batchrpc.method:" + std::string(function_name<M>());
}

// The function that constructs a T.
template <class T, class... Params>
struct Creation {
  Future<void> operator()(ObjectId object, ObjectId token, Params... arguments) const {
    Promise<void> promise;
    Future<void> future = promise.get_future();
    create_object(
        object, token, class_name<T>(),
        [... arguments = std::move(arguments)]() mutable -> std::shared_ptr<void> {
          return std::make_shared<T>(std::move(arguments)...);
        },
        [promise = std::move(promise)](Result<void> result) mutable {
          promise.set_result(std::move(result));
        });
    return future;
  }
  [[nodiscard]] Reception announce(Decoder& arguments,
                                   const std::shared_ptr<TransferGate>& /*gate*/) const {
    return {.kept = expect_object(arguments)};
  }
};

// Runs `method(object)` on an object when its turn comes, and completes the future with what it
// returns.
template <class R, class T, class Method>
Future<R> call_object(ObjectId id, Method method) {
  Promise<R> promise;
  Future<R> future = promise.get_future();
  const CallContext* context = CallContext::current();
  run_on_object(id, class_name<T>(),
                [promise = std::move(promise), method = std::move(method),
                 context = context != nullptr ? *context : CallContext()](
                    Result<std::shared_ptr<void>> object) mutable {
                  if (!object) {
                    promise.set_error(std::make_exception_ptr(DidNotRun{object.error()}));
                    return;
                  }
                  if (const std::exception_ptr over = context.over()) {
                    promise.set_error(std::make_exception_ptr(DidNotRun{over}));
                    return;
                  }
                  try {
                    const auto self = std::static_pointer_cast<T>(object.value());
                    std::optional<ContextScope> scope(context);
                    if constexpr (std::is_void_v<decltype(method(*self))>) {
                      method(*self);
                      promise.set_value();
                    } else if constexpr (Unwrapped<decltype(method(*self))>::kAsynchronous) {
                      // The object lives until the future is ready, and so do the arguments, in
                      // their place: a coroutine may refer to them.
                      auto running = std::make_unique<Method>(std::move(method));
                      Future<R> pending = (*running)(*self);
                      scope.reset();
                      if (!pending.valid())
                        throw InvalidArgument("the method returned an empty future");
                      std::move(pending).then(
                          [self, running = std::move(running), promise = std::move(promise)](
                              Result<R> result) mutable { promise.set_result(std::move(result)); });
                    } else {
                      promise.set_value(method(*self));
                    }
                  } catch (...) {
                    promise.set_error(std::current_exception());
                  }
                });
  return future;
}

}  // namespace detail

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
/// at a time. When the owner dies, calls end with PeerLost or NotSent.
template <class T>
class RRef {
 public:
  using element_type = T;

  /// Refers to nothing.
  RRef() noexcept = default;

  /// Whether it refers to an object.
  [[nodiscard]] explicit operator bool() const noexcept { return reference_ != nullptr; }

  /// The name of the node where the object lives. Throws InvalidArgument when empty, as do all
  /// below.
  [[nodiscard]] const std::string& owner() const { return get().identity().owner; }
  /// Whether the object lives in the node that this handle came to, or was made in.
  [[nodiscard]] bool is_owner() const { return get().is_owner(); }

  /// On the owner, the object itself; throws InvalidArgument elsewhere, NotFound before it is
  /// constructed.
  [[nodiscard]] std::shared_ptr<T> local() const {
    return std::static_pointer_cast<T>(get().local());
  }

  /// Calls a method of the object, as Node::call does.
  template <auto M, class... Args>
  auto call(Args&&... args) const {
    return call_with<M>(CallOptions{}, std::forward<Args>(args)...);
  }
  /// The same with a time-out of its own, and retries, which do not keep the order of calls.
  template <auto M, class... Args>
  auto call_with(const CallOptions& options, Args&&... args) const {
    using Traits = detail::FunctionTraits<decltype(M)>;
    static_assert(std::is_same_v<std::remove_const_t<typename Traits::Class>, T>,
                  "the method belongs to another class; a method of a base class is called on an "
                  "RRef to that base, from Node::own");
    return send<typename Traits::Result>(detail::method_name<M>(), options,
                                         static_cast<typename Traits::Arguments*>(nullptr),
                                         std::forward<Args>(args)...);
  }

  /// A copy of the object, of a class that can travel.
  [[nodiscard]] Future<T> to_here() const {
    return send<T>(detail::value_name<T>(), CallOptions{}, static_cast<std::tuple<>*>(nullptr));
  }

  /// Whether both refer to one object.
  friend bool operator==(const RRef& a, const RRef& b) noexcept {
    if (!a.reference_ || !b.reference_) return a.reference_ == b.reference_;
    return a.reference_->identity().object == b.reference_->identity().object;
  }

 private:
  friend class Node;
  friend struct Codec<RRef>;
  friend struct std::hash<RRef>;

  explicit RRef(std::shared_ptr<detail::Reference> reference) noexcept
      : reference_(std::move(reference)) {}

  [[nodiscard]] detail::Reference& get() const {
    if (!reference_) throw InvalidArgument("this RRef refers to nothing");
    return *reference_;
  }

  template <class R, class... Params, class... Args>
  Future<detail::Received<R>> send(const std::string& name, const CallOptions& options,
                                   const std::tuple<Params...>* /*types*/, Args&&... args) const {
    static_assert(sizeof...(Params) == sizeof...(Args),
                  "the method takes another number of arguments");
    const auto key = detail::function_key(name, signature<R, detail::ObjectId, Params...>());
    const detail::Reference& reference = get();
    const auto submit = [&reference](const detail::FunctionKey& function,
                                     detail::OutgoingOptions how, Encoder& encoder,
                                     detail::ReplyHandler&& handler) {
      reference.submit(function, std::move(how), encoder, std::move(handler));
    };
    return detail::send_call<R, detail::ObjectId, Params...>(submit, key, detail::outgoing(options),
                                                             reference.identity().object,
                                                             std::forward<Args>(args)...);
  }

  std::shared_ptr<detail::Reference> reference_;
};

/// A handle travels as the names of owner and object, with a reference of its own.
template <class T>
struct Codec<RRef<T>> {
  using Wire = detail::WireReference;
  static Wire encode(const RRef<T>& handle, Encoder& encoder) {
    if (!handle) return {};
    encoder.mark_one_use();
    return handle.reference_->fork();
  }
  static RRef<T> decode(Wire&& wire, Decoder& /*decoder*/) {
    if (wire.owner.empty()) return {};
    return RRef<T>(detail::Reference::received(std::move(wire)));
  }
};

template <class Constructor>
void Node::expose_class() const {
  using Traits = detail::ConstructorTraits<Constructor>;
  using T = typename Traits::Class;
  detail::use_objects(core());
  [this]<class... Params>(const std::tuple<Params...>* /*types*/) {
    this->expose_reserved(detail::create_name<T>(), detail::Creation<T, Params...>());
  }(static_cast<typename Traits::Arguments*>(nullptr));
  if constexpr (Codable<T>) {
    expose_reserved(detail::value_name<T>(), [](detail::ObjectId object) -> Future<T> {
      return detail::call_object<T, T>(object, [](T& self) -> T { return self; });
    });
  }
}

template <class T>
bool Node::unexpose_class() const {
  const bool created = remove_reserved(detail::create_name<T>());
  const bool copied = remove_reserved(detail::value_name<T>());
  return created || copied;
}

template <auto M>
requires std::is_member_function_pointer_v<decltype(M)>
void Node::expose() const {
  using Traits = detail::FunctionTraits<decltype(M)>;
  using T = std::remove_const_t<typename Traits::Class>;
  detail::use_objects(core());
  [this]<class... Params>(const std::tuple<Params...>* /*types*/) {
    const auto method = [](detail::ObjectId object,
                           Params... arguments) -> Future<typename Traits::Result> {
      return detail::call_object<typename Traits::Result, T>(
          object, [... arguments = std::move(arguments)](T& self) mutable {
            return (self.*M)(std::move(arguments)...);
          });
    };
    this->expose_reserved(detail::method_name<M>(), method);
  }(static_cast<typename Traits::Arguments*>(nullptr));
}

template <class Constructor, class... Args>
RRef<typename detail::ConstructorTraits<Constructor>::Class> Node::create(PeerRef peer,
                                                                          Args&&... args) const {
  using T = typename detail::ConstructorTraits<Constructor>::Class;
  detail::use_objects(core());
  auto reference = detail::Reference::to_new_object(core(), peer_name(peer));
  const auto send = [&]<class... Params>(const std::tuple<Params...>* /*types*/) {
    static_assert(sizeof...(Params) == sizeof...(Args),
                  "the constructor takes another number of arguments");
    using Traits = detail::Signature<void, detail::ObjectId, detail::ObjectId, Params...>;
    const auto& identity = reference->identity();
    // The object is not part of a call that may be under way here.
    call_typed<void>(key<Traits>(detail::create_name<T>()), CallOptions{.detached = true},
                     PeerRef(identity.owner), static_cast<typename Traits::Arguments*>(nullptr),
                     identity.object, identity.token, std::forward<Args>(args)...)
        .then([reference](Result<void> created) {
          if (!created) reference->creation_failed(created.error());
        });
  };
  if constexpr (std::is_function_v<Constructor>) {
    send(static_cast<typename detail::ConstructorTraits<Constructor>::Arguments*>(nullptr));
  } else {
    send(static_cast<std::tuple<std::decay_t<Args>...>*>(nullptr));
  }
  return RRef<T>(std::move(reference));
}

template <class T>
RRef<T> Node::own(std::shared_ptr<T> object) const {
  detail::use_objects(core());
  return RRef<T>(detail::own_object(core(), detail::class_name<T>(), std::move(object)));
}

}  // namespace batchrpc

template <class T>
struct std::hash<batchrpc::RRef<T>> {
  std::size_t operator()(const batchrpc::RRef<T>& handle) const noexcept {
    if (!handle) return 0;
    const auto& object = handle.reference_->identity().object;
    return static_cast<std::size_t>(object.creator * 31 + object.number);
  }
};
