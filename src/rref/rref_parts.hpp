#pragma once

#include <memory>
#include <mutex>

#include "rref/object_table.hpp"
#include "rref/outbox.hpp"
#include "rref/references.hpp"

namespace batchrpc::detail {

/// A node's state for remote references: an extension of the LocalNode.
struct RrefParts {
  explicit RrefParts(LocalNode& node)
      : outbox(std::make_shared<Outbox>(node)),
        objects(std::make_shared<ObjectTable>(node, *outbox)),
        references(std::make_shared<References>(node, *objects, *outbox)) {}

  std::once_flag follows_node;
  const std::shared_ptr<Outbox> outbox;
  const std::shared_ptr<ObjectTable> objects;    ///< the objects it owns
  const std::shared_ptr<References> references;  ///< the references it holds
};

/// The data for rref_report() and Node::metrics().
/// @{
[[nodiscard]] RRefReport report(const RrefParts& parts);
void add_metrics(const RrefParts& parts, RRefMetrics& metrics);
/// @}

}  // namespace batchrpc::detail
