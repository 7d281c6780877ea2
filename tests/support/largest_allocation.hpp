#pragma once

#include <cstddef>

namespace batchrpc::test {

/// The largest block that this program has asked for since reset_largest_allocation(), by operator
/// new.
[[nodiscard]] std::size_t largest_allocation() noexcept;
void reset_largest_allocation() noexcept;

/// Bytes that operator new has given out and not got back.
[[nodiscard]] std::size_t allocated_bytes() noexcept;

/// Has the n-th allocation of the calling thread from now on fail, once. 0: none.
void fail_allocation(std::size_t n) noexcept;
/// Whether it has failed. None will fail from now on.
[[nodiscard]] bool allocation_failed() noexcept;

}  // namespace batchrpc::test
