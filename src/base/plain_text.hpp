#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Whether `text` can be shown as it is: it is UTF-8 without control characters, line separators,
/// and characters that change the direction of the text around them.
[[nodiscard]] BATCHRPC_EXPORT bool is_plain_text(std::string_view text) noexcept;

/// Returns `text` as plain text: writes each character that is not plain as an escape, such as \n,
/// \x1b or \u202e. The result has at most `most_bytes` bytes. It ends with "..." if it was cut.
/// Plain text remains as it is, so that a text can be escaped twice.
[[nodiscard]] BATCHRPC_EXPORT std::string escaped(std::string_view text, std::size_t most_bytes);

/// Like escaped(), but keeps line feeds and tabs.
[[nodiscard]] BATCHRPC_EXPORT std::string escaped_lines(std::string_view text,
                                                        std::size_t most_bytes);

/// Returns the text of an exception without the stack of 3 to 7 KB that LibTorch writes into it. A
/// program may have put more behind that.
[[nodiscard]] BATCHRPC_EXPORT std::string without_stack(std::string text);

}  // namespace batchrpc
