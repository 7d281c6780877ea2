#pragma once

#include <cstddef>

namespace batchrpc::detail {

/// Frees memory of a hash table that has many times more room than entries.
template <class Table>
void shrink(Table& table) {
  constexpr std::size_t kSmall = 4096;
  if (table.bucket_count() > kSmall && table.size() < table.bucket_count() / 16) table.rehash(0);
}

}  // namespace batchrpc::detail
