#include "rl_benchmark/launch.hpp"

#include <csignal>
#include <optional>
#include <vector>

#include "common/interrupt.hpp"
#include "common/process.hpp"
#include "rl_benchmark/coordinator.hpp"
#include "rl_benchmark/participant.hpp"

namespace rl_benchmark {
namespace {

using batchrpc_examples::ChildProcess;
using batchrpc_examples::InterruptFlag;

/// While it lives SIGINT and SIGTERM wait; children are not born with that.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGINT);
    ::sigaddset(&signals, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

std::vector<ChildProcess> start_others(const Setting& setting) {
  std::vector<ChildProcess> others;
  for (int rank = 1; rank < setting.world_size; ++rank) {
    others.emplace_back([&setting, rank] {
      std::signal(SIGINT, SIG_IGN);  // a terminal sends it to all; the coordinator ends the run
      run_participant(setting, rank);
      return 0;
    });
  }
  return others;
}

RunRecord coordinate(const Setting& setting, const InterruptFlag& interrupts,
                     std::optional<std::chrono::steady_clock::time_point> started, bool progress,
                     bool more) {
  Coordinator coordinator(setting, interrupts, progress);
  RunRecord record = coordinator.run(started);
  coordinator.dismiss(more && record.incomplete.empty());
  return record;
}

}  // namespace

RunRecord launch(const Setting& setting, std::chrono::steady_clock::time_point started,
                 bool progress) {
  std::optional<HeldSignals> held(std::in_place);
  std::vector<ChildProcess> others = start_others(setting);  // before this process has threads
  const InterruptFlag interrupts;
  held.reset();
  RunRecord record = coordinate(setting, interrupts, started, progress, false);
  for (ChildProcess& other : others)
    other.wait_for(std::chrono::seconds(record.incomplete.empty() ? 5 : 1));
  batchrpc_examples::stop_all(others);
  return record;
}

RunRecord coordinate(const Setting& setting, bool progress, bool more) {
  const InterruptFlag interrupts;
  return coordinate(setting, interrupts, std::nullopt, progress, more);
}

}  // namespace rl_benchmark
