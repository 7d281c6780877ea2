#include "common/cpu_time.hpp"

#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>

namespace batchrpc_benchmarks {

double cpu_seconds(pid_t process) {
  clockid_t clock{};
  timespec time{};
  int error = ::clock_getcpuclockid(process, &clock);
  if (error == 0 && ::clock_gettime(clock, &time) != 0) error = errno;
  if (error != 0) throw std::system_error(error, std::generic_category(), "a process's CPU time");
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

CpuWatch::CpuWatch(std::optional<pid_t> server) : server_(server), begin_(now()) {}

CpuTime CpuWatch::now() const {
  return {.client = cpu_seconds(::getpid()), .server = server_ ? cpu_seconds(*server_) : 0};
}

CpuTime CpuWatch::passed() const {
  const CpuTime end = now();
  return {.client = end.client - begin_.client, .server = end.server - begin_.server};
}

}  // namespace batchrpc_benchmarks
