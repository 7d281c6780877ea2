#pragma once

#include <batchrpc/node/node.hpp>
#include <string>
#include <vector>

namespace batchrpc_examples {

/// Waits for the end of a worker process: its employer tells it to finish, or is lost.
class WorkerEnd {
 public:
  /// From now on `node` can be told to finish. `employer` is the name of the node it works for.
  WorkerEnd(const batchrpc::Node& node, const std::string& employer);
  [[nodiscard]] bool is_over() const { return ended_.ready(); }
  /// Blocks until then.
  void wait() const { ended_.wait(); }

 private:
  batchrpc::Future<void> ended_;
};

/// Tells nodes with a WorkerEnd to finish. Waits until all have received that, but at most for
/// `patience`. Lost nodes are left out.
void finish_workers(const batchrpc::Node& node, const std::vector<std::string>& workers,
                    batchrpc::Duration patience);

}  // namespace batchrpc_examples
