#pragma once

#include <cstddef>

namespace batchrpc::detail {

/// Gives the room back that a hash table has for many times as much as is in it.
template <class Table>
void shrink(Table& table) {
  constexpr std::size_t kSmall = 4096;
  if (table.bucket_count() > kSmall && table.size() < table.bucket_count() / 16) table.rehash(0);
}

}  // namespace batchrpc::detail
