#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/wire/encoder.hpp"

namespace batchrpc {

/// Copies a message in Cap'n Proto's stream framing, of any number of segments and with far
/// pointers, into one segment (its first word is the root pointer), by Cap'n Proto's own checked
/// reader. The copy has at most `traversal_limit_words`. Throws BadMessage.
[[nodiscard]] BATCHRPC_EXPORT std::vector<Word> flatten(
    std::span<const std::byte> stream_framed_message, std::size_t traversal_limit_words);

}  // namespace batchrpc
