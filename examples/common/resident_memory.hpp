#pragma once

#include <cstdint>

namespace batchrpc_examples {

/// The memory that this process has in RAM, without what the allocator could give back.
std::int64_t resident_bytes();

}  // namespace batchrpc_examples
