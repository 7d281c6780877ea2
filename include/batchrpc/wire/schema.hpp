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

/// The Cap'n Proto schema with which the `capnp` tool reads a captured call: structs `Arguments`
/// (arg0, arg1, …) and `Result` (result), and what they are made of. A file of its own, with an id
/// that depends on the function's name and types alone.
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
