#pragma once

#include <cstdint>

namespace batchrpc_examples {

/// The kernel's figures about this process (/proc/self/status).
struct ProcessStatus {
  std::int64_t resident_bytes = 0;  ///< its pages in RAM, including those of files (libraries)
  /// Its pages in RAM that do not belong to files: heap, stacks, written data of libraries, and
  /// shared memory.
  std::int64_t anonymous_bytes = 0;
  std::int32_t threads = 0;
};

/// Throws `std::runtime_error` if they are not available.
ProcessStatus process_status();

}  // namespace batchrpc_examples
