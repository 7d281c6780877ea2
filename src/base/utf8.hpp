#pragma once

#include <cstddef>
#include <string_view>

namespace batchrpc {

/// What stands for each byte that is not UTF-8: U+FFFD.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// How many bytes the character at the begin of `text`, which is not empty, has; 0: it is not UTF-8
/// (RFC 3629, its table of well-formed sequences).
[[nodiscard]] std::size_t utf8_length(std::string_view text) noexcept;

}  // namespace batchrpc
