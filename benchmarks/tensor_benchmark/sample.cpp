#include "tensor_benchmark/sample.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace tensor_benchmark {

std::uint64_t minor_faults(pid_t process) {
  // Field 10. The second field, the name, may contain spaces.
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
  std::string field;
  for (int number = 3; number < 10; ++number)
    fields >> field;
  std::uint64_t faults = 0;
  if (!(fields >> faults)) throw std::runtime_error("a process's page faults cannot be read");
  return faults;
}

Sample take_sample(Client& client, const Case& which, double seconds, std::optional<pid_t> server) {
  client.run(seconds / 4);
  const auto faults_of = [](std::optional<pid_t> process) {
    return process ? minor_faults(*process) : 0;
  };
  const std::uint64_t client_faults = minor_faults(::getpid());
  const std::uint64_t server_faults = faults_of(server);
  const batchrpc_benchmarks::CpuWatch cpu(server);
  Outcome outcome = client.run(seconds);
  const CpuTime used = cpu.passed();
  const auto calls = static_cast<double>(outcome.us.size());
  const double gb = calls * static_cast<double>(moved_bytes(which)) / 1e9;
  return {.gb_per_s = gb / outcome.seconds,
          .cpu_s_per_gb = {.client = used.client / gb, .server = used.server / gb},
          .fresh_pages = {.client =
                              static_cast<double>(minor_faults(::getpid()) - client_faults) / calls,
                          .server = static_cast<double>(faults_of(server) - server_faults) / calls},
          .us = std::move(outcome.us)};
}

std::optional<Sides> count_copies(Client& client, const Case& which, CopyCounts& counts) {
  if (!CopyCounts::possible()) return std::nullopt;
  counts.begin();
  const Outcome outcome = client.run(0);
  const Copied copied = counts.end();
  const double bytes = static_cast<double>(outcome.us.size()) * static_cast<double>(which.bytes);
  return Sides{.client = static_cast<double>(copied.client) / bytes,
               .server = static_cast<double>(copied.server) / bytes};
}

}  // namespace tensor_benchmark
