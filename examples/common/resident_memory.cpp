#include "common/resident_memory.hpp"

#include <malloc.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace batchrpc_examples {

std::int64_t resident_bytes() {
  ::malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  if (!(file >> all >> resident)) throw std::runtime_error("cannot read this process's memory");
  return resident * ::sysconf(_SC_PAGESIZE);
}

std::int64_t allocated_bytes() {
  const auto info = ::mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

}  // namespace batchrpc_examples
