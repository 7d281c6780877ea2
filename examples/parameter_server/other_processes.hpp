#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/process.hpp"
#include "parameter_server/options.hpp"

namespace batchrpc_examples {

/// The other processes, which server 0 starts and stops.
class OtherProcesses {
 public:
  OtherProcesses(const ParameterServerOptions& options, std::vector<std::string> arguments);
  ~OtherProcesses() { stop_all(processes_); }
  OtherProcesses(const OtherProcesses&) = delete;
  OtherProcesses& operator=(const OtherProcesses&) = delete;

  /// Throws a std::runtime_error that names the process if one has ended.
  void check();
  /// How a server has ended; empty if it has not.
  std::string end_of_server(int index);
  /// Waits until all have ended; servers have a last checkpoint to write. Returns those that
  /// failed.
  std::vector<std::string> wait();

 private:
  [[nodiscard]] std::string name(std::size_t i) const;

  const std::size_t servers_;
  std::vector<ChildProcess> processes_;  // ranks from 1 on
};

}  // namespace batchrpc_examples
