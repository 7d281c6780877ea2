#include "call/local_node.hpp"

namespace batchrpc {

LocalNode::~LocalNode() = default;

bool LocalNode::is_left_alone(const std::shared_ptr<LocalNode>& node) {
  if (!node->is_forked_copy()) return false;
  [[maybe_unused]] const auto* const kept = new std::shared_ptr<LocalNode>(node);
  return true;
}

}  // namespace batchrpc
