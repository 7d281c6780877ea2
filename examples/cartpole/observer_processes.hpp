#pragma once

#include <string>
#include <vector>

#include "cartpole_observer/group_options.hpp"
#include "common/process.hpp"

namespace batchrpc_examples {

/// The observers' processes, started by the agent's process. They end with this object.
class ObserverProcesses {
 public:
  /// Starts all observers of the group. It runs the program `cartpole_observer` next to this one
  /// or, if that is missing, this program. Throws std::system_error.
  explicit ObserverProcesses(const GroupOptions& group);
  ~ObserverProcesses();
  ObserverProcesses(const ObserverProcesses&) = delete;
  ObserverProcesses& operator=(const ObserverProcesses&) = delete;

  /// Throws std::runtime_error if a process has ended.
  void check();

  /// Waits a moment for all processes to end by themselves.
  void wait();

 private:
  std::vector<ChildProcess> processes_;
};

}  // namespace batchrpc_examples
