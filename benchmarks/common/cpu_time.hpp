#pragma once

#include <sys/types.h>

#include <optional>

namespace batchrpc_benchmarks {

/// The CPU time of a process so far, over all threads. Throws std::system_error.
double cpu_seconds(pid_t process);

/// The CPU time of the calling and of the called process. The user of the struct chooses the unit.
struct CpuTime {
  double client = 0;
  double server = 0;  ///< 0 if both are one process

  [[nodiscard]] double sum() const { return client + server; }
};

/// The CPU seconds of this process, and of `server` if there is one, since the watch was created.
class CpuWatch {
 public:
  explicit CpuWatch(std::optional<pid_t> server);
  [[nodiscard]] CpuTime passed() const;

 private:
  [[nodiscard]] CpuTime now() const;

  std::optional<pid_t> server_;
  CpuTime begin_;
};

}  // namespace batchrpc_benchmarks
