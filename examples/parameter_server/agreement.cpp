#include "parameter_server/agreement.hpp"

#include <utility>

namespace batchrpc_examples {

namespace rpc = batchrpc;

rpc::Future<AgreedIteration> Agreement::notify(const std::string& server,
                                               const OwnCheckpoints& own) {
  rpc::Promise<AgreedIteration> promise;
  auto future = promise.get_future();
  std::vector<rpc::Promise<AgreedIteration>> answered;
  AgreedIteration agreed;
  {
    const std::lock_guard lock(mutex_);
    told_[server] = own;
    waiting_.push_back(std::move(promise));
    if (std::ssize(told_) < options_.servers) return future;
    agreed = agree();
    answered = std::exchange(waiting_, {});
  }
  for (auto& each : answered)
    each.set_value(agreed);
  return future;
}

std::vector<std::string> Agreement::missing() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (int index = 0; index < options_.servers; ++index) {
    if (!told_.contains(server_name(index))) names.push_back(server_name(index));
  }
  return names;
}

AgreedIteration Agreement::agree() const {
  Restorable restorable;
  for (const auto& [server, own] : told_) {
    if (!own.error.empty()) return {.error = own.error};
    restorable[server] = own.iterations;
  }
  try {
    return {.iteration = newest_common(restorable), .error = {}};
  } catch (const CheckpointError& error) {
    return {.error = error.what()};
  }
}

}  // namespace batchrpc_examples
