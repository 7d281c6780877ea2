#pragma once

#include <type_traits>

namespace batchrpc::detail {

/// Checks arguments for parameters of these types. The compiler's error says what is wrong.
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
