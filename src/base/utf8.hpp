#pragma once

#include <cstddef>
#include <string_view>

namespace batchrpc {

/// U+FFFD, which replaces each byte that is not UTF-8.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// The number of bytes of the first character of `text`, which must not be empty; 0 if it is not
/// UTF-8 (RFC 3629, table of well-formed sequences).
[[nodiscard]] std::size_t utf8_length(std::string_view text) noexcept;

}  // namespace batchrpc
