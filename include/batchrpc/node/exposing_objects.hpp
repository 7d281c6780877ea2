#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/node/node.hpp"
#include "batchrpc/rref/object_functions.hpp"
#include "batchrpc/rref/reference.hpp"
#include "batchrpc/rref/rref.hpp"

// The functions of Node for objects behind RRefs: they expose classes, and create and own objects.
// batchrpc/node/node.hpp declares and describes them.
namespace batchrpc {
namespace detail {

// Exposes a function of the library's own. It only queues, so it is a short handler.
template <class Callable>
void expose_own(const Node& node, std::string name, Callable callable, Allow allow = {}) {
  NodeAccess::expose_own(
      node, make_exposed(std::move(name), std::move(callable),
                         ExposeOptions{.short_handler = true, .allow = std::move(allow)}));
}

template <class T, class Base>
void allow_as(const Node& node) {
  static_assert(std::is_base_of_v<Base, T>,
                "expose_class<T(...), Base>(): T is not derived from Base");
  allow_as(NodeAccess::local(node), class_name<T>(), class_name<Base>(), &upcast<T, Base>);
}

// Creations of a `Named` make a T.
template <class Named, class T, class... Params>
void expose_creation(const Node& node, const Allow& creators,
                     const std::tuple<Params...>* /*types*/) {
  use_objects(NodeAccess::local(node));
  const auto make = [](Params... arguments) {
    return object_of(std::make_shared<T>(std::move(arguments)...));
  };
  expose_own(node, create_name<Named>(),
             Creation<T, decltype(make), Params...>{make, constructor_text<Named>()}, creators);
}

// Creates an object on the peer, by the function of that name. `maker` is how errors name it.
template <class... Params, class... Args>
std::shared_ptr<Reference> create_by(const Peer& peer, const std::string& name,
                                     std::string_view maker, const std::tuple<Params...>* /*types*/,
                                     Args&&... args) {
  const CallOptions options = options_of_creation(PeerAccess::options(peer));
  const std::shared_ptr<NodeCore> core = PeerAccess::core(peer);
  const std::shared_ptr<LocalNode> local = NodeAccess::local(core);
  use_objects(local);
  auto reference =
      Reference::to_new_object(local, NodeAccess::name_of(*core, PeerAccess::ref(peer)));
  using Traits = Signature<void, ObjectId, Params...>;
  call_as<Traits>(SubmitTo{core.get(), PeerRef(reference->owner())}, key_of<Traits>(name),
                  NodeAccess::outgoing(options, core.get()), reference->object(),
                  std::forward<Args>(args)...)
      .then([reference, maker](Result<void> created) {
        if (!created) reference->creation_failed(created.error(), maker);
      });
  return reference;
}

}  // namespace detail

template <class Constructor, class... Bases>
requires std::is_void_v<detail::WhyNotConstructed<Constructor>>
void Node::expose_class(const Allow& creators) const {
  using Traits = detail::ConstructorTraits<Constructor>;
  using T = typename Traits::Class;
  detail::expose_creation<T, T>(*this, creators, static_cast<typename Traits::Arguments*>(nullptr));
  (detail::allow_as<T, Bases>(*this), ...);
  if constexpr (Codable<T>) {
    detail::expose_own(*this, detail::value_name<T>(), [](detail::ObjectId object) -> Future<T> {
      return detail::call_object<T, T>(object, [](T& self) -> T { return self; });
    });
  }
}

template <class Interface, class Constructor>
requires std::is_void_v<detail::WhyNotConstructed<Constructor>>
void Node::expose_implementation(const Allow& creators) const {
  using Traits = detail::ConstructorTraits<Constructor>;
  using T = typename Traits::Class;
  detail::expose_creation<Interface, T>(*this, creators,
                                        static_cast<typename Traits::Arguments*>(nullptr));
  detail::allow_as<T, Interface>(*this);
}

template <auto F>
requires detail::kExposable<detail::FactoryTraits<F>>
void Node::expose_factory(const Allow& creators) const {
  using Traits = detail::FunctionTraits<decltype(F)>;
  using T = typename detail::MadeObject<typename Traits::Result>::Class;
  detail::use_objects(detail::NodeAccess::local(*this));
  [this, &creators]<class... Params>(const std::tuple<Params...>* /*types*/) {
    if constexpr (std::is_member_function_pointer_v<decltype(F)>) {
      using Maker = std::remove_const_t<typename Traits::Class>;
      const auto make = [](detail::ObjectId maker, Params... arguments) {
        return detail::call_object<std::shared_ptr<void>, Maker>(
            maker, [... arguments = std::move(arguments)](Maker& self) mutable {
              return detail::object_of((self.*F)(std::move(arguments)...));
            });
      };
      detail::expose_own(
          *this, detail::factory_name<F>(),
          detail::MemberCreation<T, decltype(make), Params...>{make, detail::function_name<F>()},
          creators);
    } else {
      const auto make = [](Params... arguments) {
        return detail::object_of(F(std::move(arguments)...));
      };
      detail::expose_own(
          *this, detail::factory_name<F>(),
          detail::Creation<T, decltype(make), Params...>{make, detail::function_name<F>()},
          creators);
    }
  }(static_cast<typename Traits::Arguments*>(nullptr));
}

template <auto M>
requires detail::ExposableMethod<M, detail::FunctionTraits<decltype(M)>>
void Node::expose(std::string_view name) const {
  using Traits = detail::FunctionTraits<decltype(M)>;
  using T = std::remove_const_t<typename Traits::Class>;
  detail::use_objects(detail::NodeAccess::local(*this));
  [this, name]<class... Params>(const std::tuple<Params...>* /*types*/) {
    using R = typename Traits::Result;
    if constexpr (std::is_member_object_pointer_v<decltype(M)>) {
      detail::expose_own(*this, detail::method_name(name),
                         detail::BatchedMethod<M, T, R, Params...>{
                             detail::NodeAccess::host(*this, std::string(name))});
    } else {
      const auto method = [](detail::ObjectId object, Params... arguments) -> Future<R> {
        return detail::call_object<R, T>(object,
                                         [... arguments = std::move(arguments)](T& self) mutable {
                                           return (self.*M)(std::move(arguments)...);
                                         });
      };
      detail::expose_own(*this, detail::method_name(name), method);
    }
  }(static_cast<typename Traits::Arguments*>(nullptr));
}

template <class Constructor, class... Args>
requires detail::kCreates<Constructor, Args...>
    RRef<typename detail::ConstructorTraits<Constructor>::Class> Peer::create(Args&&... args)
const {
  using T = typename detail::ConstructorTraits<Constructor>::Class;
  const auto create_with = [&]<class Arguments>(const Arguments* types) {
    return RRef<T>(detail::create_by(*this, detail::create_name<T>(), detail::constructor_text<T>(),
                                     types, std::forward<Args>(args)...));
  };
  if constexpr (std::is_function_v<Constructor>) {
    using Arguments = typename detail::ConstructorTraits<Constructor>::Arguments;
    return create_with(static_cast<const Arguments*>(nullptr));
  } else {
    return create_with(static_cast<const std::tuple<std::decay_t<Args>...>*>(nullptr));
  }
}

template <auto F, class... Args>
requires detail::CreatesBy<F, Args...>
auto Peer::create(Args&&... args) const {
  using Traits = detail::FunctionTraits<decltype(F)>;
  using T = typename detail::MadeObject<typename Traits::Result>::Class;
  return RRef<T>(detail::create_by(*this, detail::factory_name<F>(), detail::function_name<F>(),
                                   static_cast<typename Traits::Arguments*>(nullptr),
                                   std::forward<Args>(args)...));
}

template <class T>
RRef<T> Node::own(std::shared_ptr<T> object) const {
  if (!object) throw InvalidArgument("own(): the pointer to the object is null");
  const std::shared_ptr<LocalNode> local = detail::NodeAccess::local(*this);
  detail::use_objects(local);
  return RRef<T>(detail::own_object(local, detail::object_class<T>(), object));
}

}  // namespace batchrpc
