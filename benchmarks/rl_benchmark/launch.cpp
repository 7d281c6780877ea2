#include "rl_benchmark/launch.hpp"

#include <algorithm>
#include <batchrpc/batchrpc.hpp>
#include <chrono>
#include <csignal>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "common/process.hpp"
#include "rl_benchmark/coordinator.hpp"
#include "rl_benchmark/participant.hpp"
#include "rl_benchmark/world.hpp"

namespace rl_benchmark {
namespace {

using batchrpc::InterruptFlag;
using batchrpc_examples::ChildProcess;

/// Defers SIGINT and SIGTERM while it exists; children do not inherit that.
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
      std::signal(SIGINT,
                  SIG_IGN);  // a terminal sends it to all processes; the coordinator ends the run
      run_participant(setting, rank);
      return 0;
    });
  }
  return others;
}

void check_others(const Setting& setting, std::vector<ChildProcess>& others) {
  for (std::size_t i = 0; i < others.size(); ++i) {
    const auto end = others[i].poll();
    if (!end) continue;
    throw std::runtime_error(name_of(setting, static_cast<int>(i) + 1) + " " + end->describe() +
                             " before the run began");
  }
}

// Waits for all processes to end by themselves. Returns a text if one does not end, or fails.
std::string await_end(const Setting& setting, std::vector<ChildProcess>& others) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (std::size_t i = 0; i < others.size(); ++i) {
    const auto left = std::max(deadline - std::chrono::steady_clock::now(),
                               std::chrono::steady_clock::duration::zero());
    const auto end =
        others[i].wait_for(std::chrono::duration_cast<std::chrono::milliseconds>(left));
    if (end && end->success()) continue;
    return name_of(setting, static_cast<int>(i) + 1) + " " +
           (end ? end->describe() : "did not end") + " after the last episode";
  }
  return {};
}

// Returns nothing if a signal arrived first.
std::optional<batchrpc::Node> join(const Setting& setting,
                                   const batchrpc::InterruptFlag& interrupts,
                                   std::vector<ChildProcess>& others) {
  try {
    auto joining = batchrpc::Node::start(node_options(setting, 0));
    while (!joining.wait_for(std::chrono::milliseconds(50))) {
      if (interrupts.is_set()) return std::nullopt;
      check_others(setting, others);
    }
    return std::move(joining).get();
  } catch (const batchrpc::JoinFailed& error) {
    throw std::runtime_error(std::string(error.what()) +
                             "; --master-addr and --master-port set where the coordinator listens");
  }
}

// `started` and `others` are given if this process has started the others.
RunRecord coordinate(const Setting& setting, const batchrpc::InterruptFlag& interrupts,
                     std::optional<std::chrono::steady_clock::time_point> started,
                     std::vector<ChildProcess> others, bool progress, bool more) {
  auto node = join(setting, interrupts, others);
  if (!node) return {.setting = setting, .incomplete = "interrupted", .interrupted = true};
  Coordinator coordinator(setting, *std::move(node), interrupts, progress);
  RunRecord record = coordinator.run(started);
  coordinator.dismiss(more && record.incomplete.empty() && !interrupts.is_set());
  if (record.incomplete.empty()) record.incomplete = await_end(setting, others);
  batchrpc_examples::stop_all(others);
  record.interrupted = interrupts.is_set();
  return record;
}

}  // namespace

RunRecord launch(const Setting& setting, std::chrono::steady_clock::time_point started,
                 bool progress) {
  std::optional<HeldSignals> held(std::in_place);
  std::vector<ChildProcess> others = start_others(setting);  // before this process has threads
  const batchrpc::InterruptFlag interrupts;
  held.reset();
  return coordinate(setting, interrupts, started, std::move(others), progress, false);
}

RunRecord coordinate(const Setting& setting, bool progress, bool more) {
  const batchrpc::InterruptFlag interrupts;
  return coordinate(setting, interrupts, std::nullopt, {}, progress, more);
}

}  // namespace rl_benchmark
