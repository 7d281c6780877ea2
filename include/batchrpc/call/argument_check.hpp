#pragma once

#include <type_traits>

namespace batchrpc::detail {

/// Checks arguments for parameters of these types. The compiler's error says what is wrong.
template <class... Params>
struct Takes {
  template <class... Args>
  static constexpr void check() {
    constexpr bool kSameNumber = sizeof...(Params) == sizeof...(Args);
    static_assert(kSameNumber, "it takes another number of arguments");
    if constexpr (kSameNumber) {
      static_assert((std::is_convertible_v<Args&&, Params> && ...),
                    "an argument's type does not convert to that of the parameter");
    }
  }
};

}  // namespace batchrpc::detail
