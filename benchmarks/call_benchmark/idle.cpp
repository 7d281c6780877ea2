#include "call_benchmark/idle.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <batchrpc/transport/inproc.hpp>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "call_benchmark/child.hpp"
#include "call_benchmark/functions.hpp"
#include "call_benchmark/nodes.hpp"
#include "call_benchmark/report.hpp"

namespace call_benchmark {

namespace {

double cpu_seconds(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    throw std::runtime_error("a process's CPU time is not known");
  }
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// A process whose share is taken from its making to the question.
class Watch {
 public:
  explicit Watch(pid_t pid) : pid_(pid), begin_cpu_(cpu_seconds(pid)) {}
  [[nodiscard]] double share() const {
    const double passed = std::chrono::duration<double>(Clock::now() - begin_).count();
    return (cpu_seconds(pid_) - begin_cpu_) / passed;
  }

 private:
  pid_t pid_;
  double begin_cpu_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

nlohmann::json measure_idle(const Options& options, std::ostream& out, Interrupt& interrupt) {
  nlohmann::json entries = nlohmann::json::array();
  const auto add = [&](Transport transport, const char* side, double share) {
    char line[128];
    std::snprintf(line, sizeof line, "%-9s %-8s %7.3f %% of a core\n",
                  std::string(to_string(transport)).c_str(), side, share * 100);
    out << line << std::flush;
    entries.push_back({{"system", "batchrpc"},
                       {"case", "idle"},
                       {"transport", to_string(transport)},
                       {"side", side},
                       {"cpu_share", share},
                       {"seconds", options.seconds},
                       {"machine", machine()}});
  };
  out << "CPU time of connected nodes that do nothing, over " << options.seconds << " s\n";
  for (const Transport transport : options.transports) {
    const bool inproc = transport == Transport::inproc;
    std::shared_ptr<batchrpc::InprocNetwork> network;
    std::optional<batchrpc::Node> server;
    std::optional<Child> child;
    std::string address;
    if (inproc) {
      network = batchrpc::InprocNetwork::make();
      server.emplace(start_server(transport, network));
      address = join_address(*server, transport);
    } else {
      child.emplace(Role::node_server, transport);
      address = child->read_line(interrupt);
    }
    const batchrpc::Node node = start_client(transport, address, "client", network);
    node.call<&scale_on_workers>(kServer, 2.0, 20, 2).get();

    const Watch own(::getpid());
    std::optional<Watch> other;
    if (child) other.emplace(child->pid());
    interrupt.sleep_until(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(options.seconds)));
    interrupt.check();
    add(transport, inproc ? "both" : "calling", own.share());
    if (other) add(transport, "called", other->share());
  }
  return entries;
}

}  // namespace call_benchmark
