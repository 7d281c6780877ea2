#include "cartpole/observer_processes.hpp"

#include <chrono>
#include <filesystem>
#include <stdexcept>

namespace batchrpc_examples {

ObserverProcesses::ObserverProcesses(const GroupOptions& group) {
  ProcessOptions process;
  const auto light = std::filesystem::path(process.program).parent_path() / "cartpole_observer";
  if (std::filesystem::exists(light)) process.program = light;
  processes_.reserve(static_cast<std::size_t>(group.world_size));
  for (int rank = 1; rank < group.world_size; ++rank) {
    process.arguments = observer_arguments(group, rank);
    processes_.emplace_back(process);
  }
}

ObserverProcesses::~ObserverProcesses() { stop_all(processes_); }

void ObserverProcesses::check() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const auto end = processes_[i].poll();
    if (!end) continue;
    throw std::runtime_error(observer_name(static_cast<int>(i) + 1) + " " + end->describe() +
                             " before the training had begun");
  }
}

void ObserverProcesses::wait() {
  for (ChildProcess& process : processes_)
    process.wait_for(std::chrono::seconds(1));
}

}  // namespace batchrpc_examples
