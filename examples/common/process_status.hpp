#pragma once

#include <cstdint>

namespace batchrpc_examples {

/// What the kernel says of this process (/proc/self/status).
struct ProcessStatus {
  std::int64_t resident_bytes = 0;  ///< its pages in RAM, those of files (libraries) included
  /// Its pages in RAM that are not of files: heap, stacks, what was written of libraries' data, and
  /// shared memory.
  std::int64_t anonymous_bytes = 0;
  std::int32_t threads = 0;
};

/// Throws `std::runtime_error` where that is not known.
ProcessStatus process_status();

}  // namespace batchrpc_examples
