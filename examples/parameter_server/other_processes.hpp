#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/process.hpp"
#include "parameter_server/options.hpp"

namespace batchrpc_examples {

/// The other processes, started by that of server 0, and stopped with it.
class OtherProcesses {
 public:
  OtherProcesses(const ParameterServerOptions& options, std::vector<std::string> arguments);
  ~OtherProcesses() { stop_all(processes_); }
  OtherProcesses(const OtherProcesses&) = delete;
  OtherProcesses& operator=(const OtherProcesses&) = delete;

  /// Throws std::runtime_error, which names the process, when one has ended.
  void check();
  /// How a server has ended; empty: it has not.
  std::string end_of_server(int index);
  /// Until they have ended; servers have a last checkpoint to write. Gives those of them that
  /// failed.
  std::vector<std::string> wait();

 private:
  [[nodiscard]] std::string name(std::size_t i) const;

  const std::size_t servers_;
  std::vector<ChildProcess> processes_;  // of rank 1 and on
};

}  // namespace batchrpc_examples
