#pragma once

#include <type_traits>

namespace batchrpc::detail {

/// What takes arguments of these types; says in words, at compile time, what is wrong with others.
template <class... Params>
struct Takes {
  template <class... Args>
  static constexpr void check() {
    constexpr bool kSameNumber = sizeof...(Params) == sizeof...(Args);
    static_assert(kSameNumber, "the function takes a different number of arguments");
    if constexpr (kSameNumber) {
      static_assert((std::is_convertible_v<Args&&, Params> && ...),
                    "an argument does not convert to the type of its parameter");
    }
  }
};

}  // namespace batchrpc::detail
