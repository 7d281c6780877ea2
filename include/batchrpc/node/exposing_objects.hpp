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

// What a node does for objects behind RRefs: exposes their classes, creates them, owns them.
// Declared, and described, in batchrpc/node/node.hpp.
namespace batchrpc {

template <class Constructor, class... Bases>
void Node::expose_class() const {
  static_assert(std::is_function_v<Constructor>,
                "name the constructor's parameters, too: expose_class<T(int, std::string)>(), or "
                "expose_class<T()>() if it has none");
  using Traits = detail::ConstructorTraits<Constructor>;
  using T = typename Traits::Class;
  expose_creation<T, T>(static_cast<typename Traits::Arguments*>(nullptr));
  (allow_as<T, Bases>(), ...);
  if constexpr (Codable<T>) {
    expose_reserved(detail::value_name<T>(), [](detail::ObjectId object) -> Future<T> {
      return detail::call_object<T, T>(object, [](T& self) -> T { return self; });
    });
  }
}

template <class Interface, class Constructor>
void Node::expose_implementation() const {
  static_assert(
      std::is_function_v<Constructor>,
      "name the constructor's parameters, too: expose_implementation<Interface, T(int)>()");
  using Traits = detail::ConstructorTraits<Constructor>;
  using T = typename Traits::Class;
  expose_creation<Interface, T>(static_cast<typename Traits::Arguments*>(nullptr));
  allow_as<T, Interface>();
}

template <class T, class Base>
void Node::allow_as() const {
  static_assert(std::is_base_of_v<Base, T>, "the first class is not derived from the second");
  detail::allow_as(local_node(), detail::class_name<T>(), detail::class_name<Base>(),
                   &detail::upcast<T, Base>);
}

// Creations of a `Named` make a T.
template <class Named, class T, class... Params>
void Node::expose_creation(const std::tuple<Params...>* /*types*/) const {
  static_assert(!std::is_abstract_v<T>,
                "objects of an abstract class cannot be created: expose a class that implements "
                "it, with expose_implementation<Interface, T(int)>()");
  static_assert(
      std::is_abstract_v<T> || std::is_constructible_v<T, Params...>,
      "the class has no public constructor that takes these types (as T, const T& or T&&), or no "
      "public destructor");
  if constexpr (std::is_constructible_v<T, Params...>) {
    detail::use_objects(local_node());
    const auto make = [](Params... arguments) {
      return detail::object_of(std::make_shared<T>(std::move(arguments)...));
    };
    this->expose_reserved(
        detail::create_name<Named>(),
        detail::Creation<T, decltype(make), Params...>{make, detail::constructor_text<Named>()});
  }
}

template <auto F>
void Node::expose_factory() const {
  using Traits = detail::FunctionTraits<decltype(F)>;
  static_cast<void>(detail::takes_temporaries<Traits>());
  using T = typename detail::MadeObject<typename Traits::Result>::Class;
  detail::use_objects(local_node());
  [this]<class... Params>(const std::tuple<Params...>* /*types*/) {
    if constexpr (std::is_member_function_pointer_v<decltype(F)>) {
      using Maker = std::remove_const_t<typename Traits::Class>;
      const auto make = [](detail::ObjectId maker, Params... arguments) {
        return detail::call_object<std::shared_ptr<void>, Maker>(
            maker, [... arguments = std::move(arguments)](Maker& self) mutable {
              return detail::object_of((self.*F)(std::move(arguments)...));
            });
      };
      this->expose_reserved(
          detail::factory_name<F>(),
          detail::MemberCreation<T, decltype(make), Params...>{make, detail::function_name<F>()});
    } else {
      const auto make = [](Params... arguments) {
        return detail::object_of(F(std::move(arguments)...));
      };
      this->expose_reserved(
          detail::factory_name<F>(),
          detail::Creation<T, decltype(make), Params...>{make, detail::function_name<F>()});
    }
  }(static_cast<typename Traits::Arguments*>(nullptr));
}

template <class T>
bool Node::unexpose_class() const {
  const bool created = remove_reserved(detail::create_name<T>());
  const bool copied = remove_reserved(detail::value_name<T>());
  return created || copied;
}

template <auto M>
requires std::is_member_pointer_v<decltype(M)>
void Node::expose() const { expose_as<M>(detail::function_name<M>()); }

template <auto M>
requires std::is_member_pointer_v<decltype(M)>
void Node::expose_as(std::string_view name) const {
  using Traits = detail::FunctionTraits<decltype(M)>;
  using T = std::remove_const_t<typename Traits::Class>;
  detail::use_objects(local_node());
  [this, name]<class... Params>(const std::tuple<Params...>* /*types*/) {
    using R = typename Traits::Result;
    if constexpr (std::is_member_object_pointer_v<decltype(M)>) {
      this->expose_reserved(detail::method_name(name), detail::BatchedMethod<M, T, R, Params...>{
                                                           this->host(std::string(name))});
    } else if constexpr (detail::takes_temporaries<Traits>()) {
      const auto method = [](detail::ObjectId object, Params... arguments) -> Future<R> {
        return detail::call_object<R, T>(object,
                                         [... arguments = std::move(arguments)](T& self) mutable {
                                           return (self.*M)(std::move(arguments)...);
                                         });
      };
      this->expose_reserved(detail::method_name(name), method);
    }
  }(static_cast<typename Traits::Arguments*>(nullptr));
}

template <class Constructor, class... Args>
RRef<typename detail::ConstructorTraits<Constructor>::Class> Node::create(PeerRef peer,
                                                                          Args&&... args) const {
  using T = typename detail::ConstructorTraits<Constructor>::Class;
  if constexpr (std::is_function_v<Constructor>) {
    return create_by<T>(
        detail::create_name<T>(), detail::constructor_text<T>(), peer,
        static_cast<typename detail::ConstructorTraits<Constructor>::Arguments*>(nullptr),
        std::forward<Args>(args)...);
  } else {
    return create_by<T>(detail::create_name<T>(), detail::constructor_text<T>(), peer,
                        static_cast<std::tuple<std::decay_t<Args>...>*>(nullptr),
                        std::forward<Args>(args)...);
  }
}

template <auto F, class... Args>
auto Node::create(PeerRef peer, Args&&... args) const {
  static_assert(!std::is_member_function_pointer_v<decltype(F)>,
                "a method creates an object through the handle of its own object: "
                "handle.create<&T::method>(...)");
  using Traits = detail::FunctionTraits<decltype(F)>;
  return create_by<typename detail::MadeObject<typename Traits::Result>::Class>(
      detail::factory_name<F>(), detail::function_name<F>(), peer,
      static_cast<typename Traits::Arguments*>(nullptr), std::forward<Args>(args)...);
}

template <class T, class... Params, class... Args>
RRef<T> Node::create_by(const std::string& name, std::string_view maker, PeerRef peer,
                        const std::tuple<Params...>* /*types*/, Args&&... args) const {
  detail::Takes<Params...>::template check<Args...>();
  detail::use_objects(local_node());
  auto reference = detail::Reference::to_new_object(local_node(), peer_name(peer));
  using Traits = detail::Signature<void, detail::ObjectId, Params...>;
  // The object is not part of a call that may be under way here.
  call_typed<void>(key<Traits>(name), CallOptions{.detached = true}, PeerRef(reference->owner()),
                   static_cast<typename Traits::Arguments*>(nullptr), reference->object(),
                   std::forward<Args>(args)...)
      .then([reference, maker](Result<void> created) {
        if (!created) reference->creation_failed(created.error(), maker);
      });
  return RRef<T>(std::move(reference));
}

template <class T>
RRef<T> Node::own(std::shared_ptr<T> object) const {
  if (!object) throw InvalidArgument("own(): the object is null");
  detail::use_objects(local_node());
  return RRef<T>(detail::own_object(local_node(), detail::class_name<T>(), object));
}

}  // namespace batchrpc
