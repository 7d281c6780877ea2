#pragma once

#include <string_view>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Whether `text` matches the pattern, in which `*` stands for any characters and `?` for one.
/// Takes at most time in proportion to the product of both lengths.
[[nodiscard]] BATCHRPC_EXPORT bool matches_glob(std::string_view pattern,
                                                std::string_view text) noexcept;

}  // namespace batchrpc
