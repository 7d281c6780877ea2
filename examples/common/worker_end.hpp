#pragma once

#include <batchrpc/node/node.hpp>
#include <string>
#include <vector>

namespace batchrpc_examples {

/// The end of a process that works for another: that one tells it to finish, or is lost.
class WorkerEnd {
 public:
  /// From now on `node` can be told to finish. `employer`: the name of the node that it works for.
  WorkerEnd(const batchrpc::Node& node, const std::string& employer);
  [[nodiscard]] bool is_over() const { return ended_.ready(); }
  /// Blocks until it is.
  void wait() const { ended_.wait(); }

 private:
  batchrpc::Future<void> ended_;
};

/// Tells nodes that have a WorkerEnd to finish, and waits until all have heard it, or `patience` is
/// over. Those that are gone are left out.
void finish_workers(const batchrpc::Node& node, const std::vector<std::string>& workers,
                    batchrpc::Duration patience);

}  // namespace batchrpc_examples
