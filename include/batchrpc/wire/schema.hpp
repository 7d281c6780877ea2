#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "batchrpc/base/export.hpp"
#include "batchrpc/wire/signature.hpp"

namespace batchrpc {
namespace detail {
[[nodiscard]] BATCHRPC_EXPORT std::string schema_text(std::string_view structure,
                                                      std::string_view function_name);
}  // namespace detail

/// The Cap'n Proto schema with which the `capnp` tool reads a captured call: the structs
/// `Arguments` (arg0, arg1, …) and `Result` (result) and their parts. It is a complete file. Its id
/// depends only on the function's name and types.
template <class R, class... Args>
std::string schema_text(std::string_view function_name) {
  if constexpr ((detail::require_in_signature<R>() && ... &&
                 detail::require_in_signature<Args>())) {
    using Text = detail::SignatureText<true, std::remove_cvref_t<R>, std::remove_cvref_t<Args>...>;
    return detail::schema_text(Text::kView, function_name);
  } else {
    return {};
  }
}

}  // namespace batchrpc
