#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>

#include "batchrpc/future/future.hpp"

namespace batchrpc::detail {

/// What the caller of a remote function gets: T for a function that returns Future<T>.
template <class R>
struct Unwrapped {
  using Type = std::remove_cvref_t<R>;
  static constexpr bool kAsynchronous = false;
};
template <class T>
struct Unwrapped<Future<T>> {
  using Type = T;
  static constexpr bool kAsynchronous = true;
};

template <class... T>
struct Types;

template <class R, class... Params>
struct Signature {
  using Return = R;
  using Result = typename Unwrapped<R>::Type;
  static constexpr bool kAsynchronous = Unwrapped<R>::kAsynchronous;
  /// The types that travel: the parameters without references and cv-qualifiers.
  using Arguments = std::tuple<std::remove_cvref_t<Params>...>;
  /// The parameters as they are.
  using Parameters = Types<Params...>;
  /// Whether each parameter accepts a decoded argument. A T& does not.
  static constexpr bool kTakesTemporaries =
      (std::is_convertible_v<std::remove_cvref_t<Params>, Params&&> && ...);
};

/// The signature of a function, a member function (without its object) or a callable with one call
/// operator. Empty for a generic lambda, a callable that is overloaded or binds arguments, and a &&
/// or volatile method.
template <class F>
struct FunctionTraits {};
template <class F>
requires requires { &F::operator(); }
struct FunctionTraits<F> : FunctionTraits<decltype(&F::operator())> {};

template <class R, class... P>
struct FunctionTraits<R(P...)> : Signature<R, P...> {};
template <class R, class... P>
struct FunctionTraits<R(P...) noexcept> : Signature<R, P...> {};
template <class R, class... P>
struct FunctionTraits<R (*)(P...)> : Signature<R, P...> {};
template <class R, class... P>
struct FunctionTraits<R (*)(P...) noexcept> : Signature<R, P...> {};

template <class C, class R, class... P>
struct MemberTraits : Signature<R, P...> {
  using Class = C;
};
template <class C, class R, class... P>
struct FunctionTraits<R (C::*)(P...)> : MemberTraits<C, R, P...> {};
template <class C, class R, class... P>
struct FunctionTraits<R (C::*)(P...) noexcept> : MemberTraits<C, R, P...> {};
template <class C, class R, class... P>
struct FunctionTraits<R (C::*)(P...)&> : MemberTraits<C, R, P...> {};
template <class C, class R, class... P>
struct FunctionTraits<R (C::*)(P...)& noexcept> : MemberTraits<C, R, P...> {};
template <class C, class R, class... P>
struct FunctionTraits<R (C::*)(P...) const> : MemberTraits<const C, R, P...> {};
template <class C, class R, class... P>
struct FunctionTraits<R (C::*)(P...) const noexcept> : MemberTraits<const C, R, P...> {};
template <class C, class R, class... P>
struct FunctionTraits<R (C::*)(P...) const&> : MemberTraits<const C, R, P...> {};
template <class C, class R, class... P>
struct FunctionTraits<R (C::*)(P...) const& noexcept> : MemberTraits<const C, R, P...> {};

/// A callable that is a member, such as a Batcher.
template <class C, class F>
requires std::is_object_v<F>
struct FunctionTraits<F C::*> : FunctionTraits<F> {
  using Class = C;
};

/// Traits that are not empty.
template <class Traits>
concept HasSignature = requires {
  typename Traits::Result;
};

constexpr bool is_plain_name(std::string_view name) {
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == ':';
    if (!plain) return false;
  }
  return !name.empty();
}

// Returns the compiler's own text of the template argument. The return type is `auto` because g++
// otherwise appends what std::string_view is an alias of.
template <auto F>
constexpr auto printed_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::string_view kMark = "F = ";
  text.remove_prefix(text.find(kMark) + kMark.size());
  text = text.substr(0, text.find_first_of(";]"));
  if (!text.empty() && text.front() == '&') text.remove_prefix(1);
  return text;
}

/// Returns the qualified name of a function, such as "space::Type::member". g++ and clang give the
/// same text.
template <auto F>
constexpr std::string_view function_name() {
  constexpr std::string_view kName = printed_name<F>();
  static_assert(
      is_plain_name(kName),
      "this function has no name that another program could use (it is a lambda, a template or an "
      "operator, or in an anonymous namespace): give it one with expose(\"name\", function)");
  return kName;
}

}  // namespace batchrpc::detail
