#include "common/process_status.hpp"

#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

namespace batchrpc_examples {

ProcessStatus process_status() {
  constexpr std::int64_t kKiB = 1024;
  ProcessStatus status;
  std::ifstream file("/proc/self/status");
  std::string key;
  while (file >> key) {
    std::int64_t value = 0;
    if (key == "VmRSS:" && file >> value) {
      status.resident_bytes = value * kKiB;
    } else if ((key == "RssAnon:" || key == "RssShmem:") && file >> value) {
      status.anonymous_bytes += value * kKiB;
    } else if (key == "Threads:" && file >> value) {
      status.threads = static_cast<std::int32_t>(value);
    }
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  if (status.anonymous_bytes == 0 || status.threads == 0)
    throw std::runtime_error("/proc/self/status does not state this process's memory");
  return status;
}

}  // namespace batchrpc_examples
