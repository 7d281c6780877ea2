#pragma once

#include <sys/types.h>

#include <optional>

namespace batchrpc_benchmarks {

/// What a process has used so far, all threads together. Throws std::system_error.
double cpu_seconds(pid_t process);

/// CPU time of the calling and of the called process, in whatever unit.
struct CpuTime {
  double client = 0;
  double server = 0;  ///< 0 when both are one process

  [[nodiscard]] double sum() const { return client + server; }
};

/// Of this process, and of `server` if there is one, since the watch was made; in seconds.
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
