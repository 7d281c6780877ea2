#include "parameter_server/other_processes.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

namespace batchrpc_examples {

OtherProcesses::OtherProcesses(const ParameterServerOptions& options,
                               std::vector<std::string> arguments)
    : servers_(static_cast<std::size_t>(options.servers)) {
  ProcessOptions process;
  process.arguments = std::move(arguments);
  process.arguments.insert(process.arguments.end(),
                           {"--launched", "--join", options.join, "--rank", ""});
  for (int rank = 1; rank < options.servers + options.trainers; ++rank) {
    process.arguments.back() = std::to_string(rank);
    processes_.emplace_back(process);
  }
}

void OtherProcesses::check() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (const auto end = processes_[i].poll()) {
      throw std::runtime_error(name(i) + " " + end->describe() + " before the training had begun");
    }
  }
}

std::string OtherProcesses::end_of_server(int index) {
  const auto end = processes_.at(static_cast<std::size_t>(index) - 1).poll();
  return end ? end->describe() : "";
}

std::vector<std::string> OtherProcesses::wait() {
  std::vector<std::string> failed;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const bool is_server = i + 1 < servers_;
    const auto end =
        processes_[i].wait_for(is_server ? std::chrono::seconds(60) : std::chrono::seconds(1));
    if (!is_server || (end && end->success())) continue;
    failed.push_back(name(i) + " " + (end ? end->describe() : "did not end"));
  }
  return failed;
}

std::string OtherProcesses::name(std::size_t i) const {
  const std::size_t rank = i + 1;
  return rank < servers_ ? server_name(static_cast<int>(rank))
                         : trainer_name(static_cast<int>(rank - servers_));
}

}  // namespace batchrpc_examples
