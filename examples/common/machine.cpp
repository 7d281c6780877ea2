#include "common/machine.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace batchrpc_examples {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

double memory_gib() {
  const double bytes =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return std::round(bytes / (1 << 30) * 10) / 10;
}

/// TCP's default congestion control. One that paces (bbr) also paces within one machine.
std::string congestion_control() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string name;
  return file >> name ? name : "unknown";
}

}  // namespace

nlohmann::json machine_report() {
  utsname system{};
  ::uname(&system);
  return {{"cpu", cpu_model()},
          {"cpus", usable_cpus()},
          {"memory_gib", memory_gib()},
          {"congestion_control", congestion_control()},
          {"system", std::string(system.sysname) + " " + system.release + " " + system.machine}};
}

}  // namespace batchrpc_examples
