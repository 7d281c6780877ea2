#pragma once

#include <batchrpc/future/promise.hpp>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "parameter_server/checkpoints.hpp"

namespace batchrpc_examples {

/// The iterations from which a server can continue, or the error that prevents it.
struct OwnCheckpoints {
  std::vector<std::int64_t> iterations;
  std::string error;
};

/// The iteration from which all servers continue, or the error that prevents it.
struct AgreedIteration {
  std::int64_t iteration = 0;
  std::string error;
};

/// The servers cannot continue; server 0 reports the reason.
class NoAgreement : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

/// Server 0 collects the checkpointed iterations of all servers, and answers all servers when it
/// has them. Thread-safe.
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
