#pragma once

#include <cstdint>

namespace batchrpc_examples {

/// The bytes of RAM of this process, without memory that the allocator could return.
std::int64_t resident_bytes();

/// The bytes that this process has allocated and not freed. Zero if the allocator is not the
/// system's, as under a sanitizer.
std::int64_t allocated_bytes();

}  // namespace batchrpc_examples
