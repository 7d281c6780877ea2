#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "batchrpc/wire/codable.hpp"

/// Counts the members of an aggregate and gives access to them.
namespace batchrpc::detail {

inline constexpr std::size_t kMaxMembers = 16;

/// Converts to a value of any type in an aggregate's braces, for members without a default.
struct AnyValue {
  template <class T>
  operator T() const noexcept;  // not defined
};
template <std::size_t>
using AnyValueOf = AnyValue;

/// Converts to T's base class and to nothing else.
template <class T>
struct AnyBase {
  template <class Base>
  requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>) operator Base()
      const noexcept;  // not defined
};

template <class T, std::size_t... I>
constexpr bool takes_values(std::index_sequence<I...>) {
  return requires { T{AnyValueOf<I>{}...}; };
}

template <class T, std::size_t N>
constexpr std::size_t count_by_values() {
  if constexpr (takes_values<T>(std::make_index_sequence<N>{})) {
    return N;
  } else if constexpr (N == 0) {
    return kMaxMembers + 1;  // not an aggregate that we support
  } else {
    return count_by_values<T, N - 1>();
  }
}

/// The number of T's members; kMaxMembers + 1 if there are more. Empty braces initialise one member
/// each, even an array; other initialisers would be spread over the array's elements.
template <class T>
constexpr std::size_t count_members() {
  // clang-format off
  if constexpr (!requires { T{}; }) return count_by_values<T, kMaxMembers + 1>();
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return 17;
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return 16;
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return 15;
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return 14;
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return 13;
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return 12;
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return 11;
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return 10;
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return 9;
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}}; }) return 8;
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}}; }) return 7;
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}}; }) return 6;
  else if constexpr (requires { T{{}, {}, {}, {}, {}}; }) return 5;
  else if constexpr (requires { T{{}, {}, {}, {}}; }) return 4;
  else if constexpr (requires { T{{}, {}, {}}; }) return 3;
  else if constexpr (requires { T{{}, {}}; }) return 2;
  else if constexpr (requires { T{{}}; }) return 1;
  else return 0;
  // clang-format on
}

template <class T>
inline constexpr std::size_t kMemberCount = count_members<T>();

/// Calls `visit` with the Types of T's members, as they are declared, and with the members.
template <class T, class Visit>
constexpr decltype(auto) visit_members(T& value, Visit&& visit) {
  constexpr std::size_t n = kMemberCount<std::remove_const_t<T>>;
  // clang-format off
  if constexpr (n == 0) { return visit(Types<>{}); }
  else if constexpr (n == 1) { auto& [a] = value; return visit(Types<decltype(a)>{}, a); }
  else if constexpr (n == 2) { auto& [a, b] = value; return visit(Types<decltype(a), decltype(b)>{}, a, b); }
  else if constexpr (n == 3) { auto& [a, b, c] = value; return visit(Types<decltype(a), decltype(b), decltype(c)>{}, a, b, c); }
  else if constexpr (n == 4) { auto& [a, b, c, d] = value; return visit(Types<decltype(a), decltype(b), decltype(c), decltype(d)>{}, a, b, c, d); }
  else if constexpr (n == 5) { auto& [a, b, c, d, e] = value; return visit(Types<decltype(a), decltype(b), decltype(c), decltype(d), decltype(e)>{}, a, b, c, d, e); }
  else if constexpr (n == 6) { auto& [a, b, c, d, e, f] = value; return visit(Types<decltype(a), decltype(b), decltype(c), decltype(d), decltype(e), decltype(f)>{}, a, b, c, d, e, f); }
  else if constexpr (n == 7) { auto& [a, b, c, d, e, f, g] = value; return visit(Types<decltype(a), decltype(b), decltype(c), decltype(d), decltype(e), decltype(f), decltype(g)>{}, a, b, c, d, e, f, g); }
  else if constexpr (n == 8) { auto& [a, b, c, d, e, f, g, h] = value; return visit(Types<decltype(a), decltype(b), decltype(c), decltype(d), decltype(e), decltype(f), decltype(g), decltype(h)>{}, a, b, c, d, e, f, g, h); }
  else if constexpr (n == 9) { auto& [a, b, c, d, e, f, g, h, i] = value; return visit(Types<decltype(a), decltype(b), decltype(c), decltype(d), decltype(e), decltype(f), decltype(g), decltype(h), decltype(i)>{}, a, b, c, d, e, f, g, h, i); }
  else if constexpr (n == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = value; return visit(Types<decltype(a), decltype(b), decltype(c), decltype(d), decltype(e), decltype(f), decltype(g), decltype(h), decltype(i), decltype(j)>{}, a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (n == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = value; return visit(Types<decltype(a), decltype(b), decltype(c), decltype(d), decltype(e), decltype(f), decltype(g), decltype(h), decltype(i), decltype(j), decltype(k)>{}, a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (n == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = value; return visit(Types<decltype(a), decltype(b), decltype(c), decltype(d), decltype(e), decltype(f), decltype(g), decltype(h), decltype(i), decltype(j), decltype(k), decltype(l)>{}, a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (n == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = value; return visit(Types<decltype(a), decltype(b), decltype(c), decltype(d), decltype(e), decltype(f), decltype(g), decltype(h), decltype(i), decltype(j), decltype(k), decltype(l), decltype(m)>{}, a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (n == 14) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = value; return visit(Types<decltype(a), decltype(b), decltype(c), decltype(d), decltype(e), decltype(f), decltype(g), decltype(h), decltype(i), decltype(j), decltype(k), decltype(l), decltype(m), decltype(o)>{}, a, b, c, d, e, f, g, h, i, j, k, l, m, o); }
  else if constexpr (n == 15) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p] = value; return visit(Types<decltype(a), decltype(b), decltype(c), decltype(d), decltype(e), decltype(f), decltype(g), decltype(h), decltype(i), decltype(j), decltype(k), decltype(l), decltype(m), decltype(o), decltype(p)>{}, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p); }
  else { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q] = value; return visit(Types<decltype(a), decltype(b), decltype(c), decltype(d), decltype(e), decltype(f), decltype(g), decltype(h), decltype(i), decltype(j), decltype(k), decltype(l), decltype(m), decltype(o), decltype(p), decltype(q)>{}, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q); }
  // clang-format on
}

template <class T>
concept HasBase = requires {
  T{AnyBase<T>{}};
};

/// Converts to a union without a codec and to nothing else.
struct AnyUnion {
  template <class Union>
  requires(std::is_union_v<Union> && !HasCodec<Union>) operator Union()
      const noexcept;  // not defined
};

// Whether the member after sizeof...(I) values is such a union. An array takes a value for each of
// its elements. An initialiser without braces of its own may also go to a member of a member, which
// does not count.
template <class T, std::size_t... I>
constexpr bool is_union_at(std::index_sequence<I...>) {
  return requires { T{AnyValueOf<I>{}..., AnyUnion{}}; }
  &&!requires { T{AnyValueOf<I>{}..., {AnyUnion{}}}; };
}

/// Whether a union is among the first kMaxMembers values of T. A union without a name has no
/// structured binding.
template <class T>
inline constexpr bool kHasUnion = []<std::size_t... I>(std::index_sequence<I...>) {
  return (is_union_at<T>(std::make_index_sequence<I>{}) || ...);
}
(std::make_index_sequence<kMaxMembers>{});

/// Stands for the members of an aggregate that has bit-fields, which cannot be sent.
class BitField {
  BitField();  // no aggregate
};

template <class... Member>
constexpr std::size_t bytes_of_members(Types<Member...>) {
  return (std::size_t{0} + ... + (std::is_empty_v<Member> ? 0 : sizeof(Member)));
}

template <class T>
constexpr auto member_types() {
  const auto without_cv = []<class... Member>(Types<Member...>, const auto&...) {
    return Types<std::remove_cv_t<Member>...>{};
  };
  using Found = decltype(visit_members(std::declval<T&>(), without_cv));
  if constexpr (bytes_of_members(Found{}) > sizeof(T)) {  // some share a word, or lie in padding
    return Types<BitField>{};
  } else {  // the compiler stops at a bit-field that shares none
    const auto by_reference = [](Found found, auto&...) { return found; };
    return decltype(visit_members(std::declval<T&>(), by_reference)){};
  }
}

/// The types of T's members, without const.
template <class T>
using MemberTypes = decltype(member_types<T>());

/// Aggregates without base classes and unions, and with at most kMaxMembers members.
template <class T>
concept Aggregate = std::is_class_v<T> && std::is_aggregate_v<T> && !HasBase<T> &&
                    kMemberCount<T> <= kMaxMembers && !kHasUnion<T>;

}  // namespace batchrpc::detail
