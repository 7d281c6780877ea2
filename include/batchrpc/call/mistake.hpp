#pragma once

#include <coroutine>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/call/function_traits.hpp"
#include "batchrpc/wire/codable.hpp"

/// What a compiler says of a call or of an exposed function that cannot be: its error is at the
/// program's own line, and the type `Why` in it is one of these.
namespace batchrpc::mistake {

/// It is a generic lambda, is overloaded, binds arguments, or is a && or volatile method. Write
/// std::function<int(int)>(f), or a lambda whose parameters have types.
struct it_has_no_single_signature;
/// It is a lambda, a template or an operator, or is in an anonymous namespace: another program
/// could not name it. Give it a name with expose("name", function), and call it by that.
struct it_has_no_name;
/// A method is exposed with its object, expose<&T::method>(object), or for objects behind RRefs,
/// expose<&T::method>(). It creates through the handle of its object, handle.create<&T::method>().
struct it_is_a_method_of_an_object;
/// The name of a function comes first: expose("name", &f).
struct the_name_comes_first;
/// A factory returns the object, or a pointer to it; this function returns nothing.
struct factory_returns_no_object;
/// Objects of an abstract class cannot be created. Expose a class that implements it:
/// expose_implementation<Interface, T(int)>().
template <class T>
struct class_is_abstract;
/// The class has no public constructor that takes these types (as T, const T& or T&&), or no public
/// destructor.
template <class T, class... Parameters>
struct class_has_no_such_constructor;
/// Name the parameters of the constructor, too: expose_class<T(int, std::string)>(), or
/// expose_class<T()>() if it has none.
template <class T>
struct constructor_has_no_parameter_list;
/// Parameter `Number`, counted from 1, is of a type that cannot be sent. Use numbers, enums,
/// strings, Bytes, containers, or an aggregate of at most 16 of these without bases, bit-fields,
/// unions, pointers or references. Include batchrpc/torch.hpp for tensors. Specialise
/// batchrpc::Codec for other types.
template <std::size_t Number, class Type>
struct parameter_cannot_be_sent;
/// The same for a parameter of a function that is exposed. It may be of a type that can be sent,
/// such as const char*: take a std::string or a std::string_view.
template <std::size_t Number, class Type>
struct parameter_cannot_be_received;
/// The same for the result.
template <class Type>
struct result_cannot_be_sent;
/// A function that answers later returns a Future by value.
template <class Type>
struct result_is_a_reference_to_a_future;
/// A function cannot change its caller's arguments: take T, const T& or T&& instead of T&, and
/// return the new value.
template <std::size_t Number, class Type>
struct parameter_is_a_reference;
/// The function has another number of parameters.
template <std::size_t Parameters, std::size_t Arguments>
struct wrong_number_of_arguments;
/// Argument `Number` does not convert to the type of its parameter.
template <std::size_t Number, class Argument, class Parameter>
struct argument_does_not_convert;
/// The method belongs to another class than the object. To call a method of a derived class, use an
/// RRef of the derived class.
template <class OfMethod, class OfObject>
struct method_of_another_class;

}  // namespace batchrpc::mistake

// What the compiler says at a call or an expose() with a mistake.
#define BATCHRPC_NO_CALL                                                                    \
  __attribute__((unavailable(                                                               \
      "the arguments do not fit the function, or a type of it cannot be sent. `Why` names " \
      "the mistake (batchrpc/call/mistake.hpp)")))
#define BATCHRPC_NAME_THE_FUNCTION                                                        \
  __attribute__((unavailable(                                                             \
      "name the function in angle brackets: call<&f>(...), or by a name with its types: " \
      "call<int(int)>(..., \"f\", 1)")))
#define BATCHRPC_NO_CLASS                                                                \
  __attribute__((                                                                        \
      unavailable("objects of this class cannot be created so. `Why` names the mistake " \
                  "(batchrpc/call/mistake.hpp)")))
#define BATCHRPC_NOT_EXPOSABLE                                                            \
  __attribute__((                                                                         \
      unavailable("this function cannot be exposed in this way. `Why` names the mistake " \
                  "(batchrpc/call/mistake.hpp)")))

namespace batchrpc::detail {

/// Stands for the result of what does not compile, so that the compiler has no more to say of it.
struct Refused {
  Refused get() const;
  Refused ready() const;
  template <class F>
  Refused then(F&& f) const;
  template <class T>
  operator T() const;  // NOLINT: implicit
  [[nodiscard]] bool await_ready() const noexcept;
  void await_suspend(std::coroutine_handle<> handle) const noexcept;
  Refused await_resume() const;
};

template <class M>
struct Mistake {
  using type = M;
};
using NoMistake = Mistake<void>;

// Returns the first mistake among its arguments; NoMistake if there is none.
template <class... M>
consteval auto first_mistake(NoMistake /*none*/, M... rest) {
  if constexpr (sizeof...(M) == 0) {
    return NoMistake{};
  } else {
    return first_mistake(rest...);
  }
}
template <class First, class... M>
consteval auto first_mistake(Mistake<First> first, M... /*rest*/) {
  return first;
}
template <bool Wrong, class M>
consteval auto mistake_if() {
  return std::conditional_t<Wrong, Mistake<M>, NoMistake>{};
}

template <class R>
inline constexpr bool kCanBeResult = std::is_void_v<R> || Encodable<R>;

// Whether the arguments and the result of a function can travel, and its parameters accept what
// has travelled.
template <class Traits>
inline constexpr bool kTravels = false;
template <HasSignature Traits>
inline constexpr bool kTravels<Traits> = Traits::kTakesTemporaries&&
    kCanBeResult<typename Traits::Result>&& []<class... P>(const std::tuple<P...>* /*types*/) {
      return (Encodable<P> && ...);
    }(static_cast<typename Traits::Arguments*>(nullptr));

// The traits of a factory: its result does not travel.
template <class Traits>
struct WithoutResult : Traits {};
template <HasSignature Traits>
struct WithoutResult<Traits> : Traits {
  using Return = void;
  using Result = void;
};
/// Whether a function with these traits can be exposed.
template <class Traits>
inline constexpr bool kExposable = false;
template <HasSignature Traits>
inline constexpr bool kExposable<Traits> =
    kTravels<Traits>&& []<class... P>(const std::tuple<P...>* /*types*/) {
      return (Codable<P> && ...);
    }(static_cast<typename Traits::Arguments*>(nullptr));

// Traits without a signature: those of a function without a name, of a method that is used as a
// function, and of a factory that returns nothing.
struct Unnamed {};
struct MethodAlone {};
struct NothingMade {};
template <auto F>
using TraitsOf =
    std::conditional_t<is_plain_name(printed_name<F>()), FunctionTraits<decltype(F)>, Unnamed>;
// The traits of a method that is exposed with `Rest`: a name for it, its object, or nothing.
template <auto M, class... Rest>
using MethodTraits = std::conditional_t<sizeof...(Rest) == 1 &&
                                            (std::is_convertible_v<Rest, std::string_view> && ...),
                                        FunctionTraits<decltype(M)>, TraitsOf<M>>;
template <class Callable>
using CallableTraits =
    std::conditional_t<std::is_member_pointer_v<Callable>, MethodAlone, FunctionTraits<Callable>>;
template <class Traits>
inline constexpr bool kMakesNothing = false;
template <HasSignature Traits>
inline constexpr bool kMakesNothing<Traits> = std::is_void_v<typename Traits::Result>;
template <auto F>
using FactoryTraits =
    std::conditional_t<kMakesNothing<TraitsOf<F>>, NothingMade, WithoutResult<TraitsOf<F>>>;
template <auto F>
using FunctionFactoryTraits = std::conditional_t<std::is_member_function_pointer_v<decltype(F)>,
                                                 MethodAlone, FactoryTraits<F>>;

template <class Traits>
consteval auto mistake_of_types() {
  if constexpr (std::is_same_v<Traits, Unnamed>) {
    return Mistake<mistake::it_has_no_name>{};
  } else if constexpr (std::is_same_v<Traits, MethodAlone>) {
    return Mistake<mistake::it_is_a_method_of_an_object>{};
  } else if constexpr (std::is_same_v<Traits, NothingMade>) {
    return Mistake<mistake::factory_returns_no_object>{};
  } else if constexpr (!HasSignature<Traits>) {
    return Mistake<mistake::it_has_no_single_signature>{};
  } else {
    using R = typename Traits::Result;
    using Return = typename Traits::Return;
    return []<class... P, std::size_t... I>(const Types<P...>* /*types*/,
                                            std::index_sequence<I...> /*numbers*/) {
      return first_mistake(
          mistake_if < std::is_reference_v<Return> && Unwrapped<R>::kAsynchronous,
          mistake::result_is_a_reference_to_a_future < Return >> (),
          mistake_if<!Encodable<P>,
                     mistake::parameter_cannot_be_sent<I + 1, std::remove_cvref_t<P>>>()...,
          mistake_if<!kCanBeResult<R>, mistake::result_cannot_be_sent<R>>(),
          mistake_if<!std::is_convertible_v<std::remove_cvref_t<P>, P&&>,
                     mistake::parameter_is_a_reference<I + 1, P>>()...);
    }(static_cast<typename Traits::Parameters*>(nullptr),
           std::make_index_sequence<std::tuple_size_v<typename Traits::Arguments>>());
  }
}

template <class Params, class Given>
inline constexpr bool kConvert = false;
template <class... P, class... A>
requires(sizeof...(P) ==
         sizeof...(A)) inline constexpr bool kConvert<std::tuple<P...>, Types<A...>> =
    (std::is_convertible_v<A&&, P> && ...);

template <class Params, class Given>
struct MistakeOfArguments;
template <class... P, class... A>
struct MistakeOfArguments<std::tuple<P...>, Types<A...>> {
  static consteval auto find() {
    if constexpr (sizeof...(P) != sizeof...(A)) {
      return Mistake<mistake::wrong_number_of_arguments<sizeof...(P), sizeof...(A)>>{};
    } else {
      return []<std::size_t... I>(std::index_sequence<I...> /*numbers*/) {
        return first_mistake(mistake_if<!std::is_convertible_v<A&&, P>,
                                        mistake::argument_does_not_convert<I + 1, A, P>>()...);
      }
      (std::index_sequence_for<P...>());
    }
  }
};

// The class of the object that a handle calls; void for a handle of a peer.
template <class Handle>
struct ObjectOfHandle {
  using type = void;
};
template <class Handle>
using ObjectOf = typename ObjectOfHandle<Handle>::type;
/// The type in which a handle passes an argument on. A handle of several peers encodes each
/// argument once, and does not move it.
template <class Handle, class Argument>
struct PassedBy {
  using type = Argument;
};
template <class Handle, class Argument>
using Passed = typename PassedBy<Handle, Argument>::type;

template <class Traits, class Object>
inline constexpr bool kMethodOf = true;
template <class Traits, class Object>
requires requires {
  typename Traits::Class;
} &&(!std::is_void_v<Object>)inline constexpr bool kMethodOf<Traits, Object> =
    std::is_base_of_v<std::remove_const_t<typename Traits::Class>, Object>;

/// Whether a function with these traits can be called on an Object (void: on a peer) with arguments
/// of these types.
template <class Traits, class Object, class... Args>
inline constexpr bool kFits = kTravels<Traits>&& kMethodOf<Traits, Object>&& [] {
  if constexpr (HasSignature<Traits>) {
    return kConvert<typename Traits::Arguments, Types<Args...>>;
  } else {
    return false;
  }
}();

/// Whether the function F can be called on an Object (void: on a peer) with arguments of these
/// types.
template <auto F, class Object, class... Args>
concept CallableWith = kFits<TraitsOf<F>, Object, Args...>;
/// Whether the factory F, a function or a method of an Object, can create an object.
template <auto F, class... Args>
concept CreatesBy = kFits < FunctionFactoryTraits<F>,
void, Args... > ;
template <auto M, class Object, class... Args>
concept CreatesOn = kFits<FactoryTraits<M>, Object, Args...>;
/// Whether a function with the type Function can be called by a name.
template <class Function, class... Args>
concept CallableByName = std::is_function_v<Function> && kFits < FunctionTraits<Function>,
void, Args... > ;

template <class Traits, class Object, class... Args>
consteval auto mistake_of_call() {
  if constexpr (kFits<Traits, Object, Args...>) {
    return NoMistake{};
  } else if constexpr (!kTravels<Traits>) {
    return mistake_of_types<Traits>();
  } else if constexpr (!kMethodOf<Traits, Object>) {
    return Mistake<
        mistake::method_of_another_class<std::remove_const_t<typename Traits::Class>, Object>>{};
  } else {
    return MistakeOfArguments<typename Traits::Arguments, Types<Args...>>::find();
  }
}
/// Why it cannot; void if it can.
template <class Traits, class Object, class... Args>
using WhyNotCalled = typename decltype(mistake_of_call<Traits, Object, Args...>())::type;

template <class Traits>
consteval auto mistake_of_function() {
  if constexpr (kExposable<Traits>) {
    return NoMistake{};
  } else if constexpr (!kTravels<Traits>) {
    return mistake_of_types<Traits>();
  } else {
    return []<class... P, std::size_t... I>(const std::tuple<P...>* /*types*/,
                                            std::index_sequence<I...> /*numbers*/) {
      return first_mistake(
          mistake_if<!Codable<P>, mistake::parameter_cannot_be_received<I + 1, P>>()...);
    }(static_cast<typename Traits::Arguments*>(nullptr),
           std::make_index_sequence<std::tuple_size_v<typename Traits::Arguments>>());
  }
}
/// Whether M is a method, or a member that is a Batcher, and can be exposed.
template <auto M, class Traits>
concept ExposableMethod = std::is_member_pointer_v<decltype(M)> && kExposable<Traits>;
/// Whether F, which is no method, is followed by a name.
template <class Name, auto F>
concept NameBehind =
    !std::is_member_pointer_v<decltype(F)> && std::is_convertible_v<Name, std::string_view>;
/// Why a function with these traits cannot be exposed; void if it can.
template <class Traits>
using WhyNotExposed = typename decltype(mistake_of_function<Traits>())::type;

template <class Constructor>
struct ConstructorMistake : Mistake<mistake::constructor_has_no_parameter_list<Constructor>> {};
template <class T, class... Params>
struct ConstructorMistake<T(Params...)>
    : decltype(first_mistake(mistake_if<std::is_abstract_v<T>, mistake::class_is_abstract<T>>(),
                             mistake_if<!std::is_constructible_v<T, std::remove_cvref_t<Params>...>,
                                        mistake::class_has_no_such_constructor<T, Params...>>())) {
};
/// Why objects of a class cannot be created by this constructor, `T(Params...)`; void if they can.
template <class Constructor>
using WhyNotConstructed = typename ConstructorMistake<Constructor>::type;

}  // namespace batchrpc::detail
