#pragma once

#include <cstdint>

namespace batchrpc_examples {

/// The memory that this process has in RAM, without what the allocator could give back.
std::int64_t resident_bytes();

/// What this process has allocated and not freed, whatever pages it lies in. Zero where the
/// allocator is not the system's: under a sanitizer.
std::int64_t allocated_bytes();

}  // namespace batchrpc_examples
