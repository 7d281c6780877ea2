#pragma once

#include <batchrpc/future/promise.hpp>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "parameter_server/checkpoints.hpp"

namespace batchrpc_examples {

/// From what iterations a server can go on, or why it cannot.
struct OwnCheckpoints {
  std::vector<std::int64_t> iterations;
  std::string error;
};

/// The iteration that all servers go on from, or why they cannot.
struct AgreedIteration {
  std::int64_t iteration = 0;
  std::string error;
};

/// Server 0 has found that the servers cannot go on, and says so.
class NoAgreement : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

/// Server 0 gathers what all servers have on their disks, and answers all when it knows.
/// Thread-safe.
class Agreement {
 public:
  explicit Agreement(const ParameterServerOptions& options) : options_(options) {}

  batchrpc::Future<AgreedIteration> notify(const std::string& server, const OwnCheckpoints& own);
  [[nodiscard]] std::vector<std::string> missing() const;

 private:
  [[nodiscard]] AgreedIteration agree() const;

  const ParameterServerOptions options_;
  mutable std::mutex mutex_;
  std::map<std::string, OwnCheckpoints> told_;
  std::vector<batchrpc::Promise<AgreedIteration>> waiting_;
};

}  // namespace batchrpc_examples
