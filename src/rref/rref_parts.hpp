#pragma once

#include <memory>
#include <mutex>

#include "rref/object_table.hpp"
#include "rref/outbox.hpp"
#include "rref/references.hpp"

namespace batchrpc::detail {

/// What a node keeps of remote references: an extension of NodeCore.
struct RrefParts {
  explicit RrefParts(LocalNode& node) : RrefParts(static_cast<NodeCore&>(node)) {}
  explicit RrefParts(NodeCore& core)
      : outbox(std::make_shared<Outbox>(core)),
        objects(std::make_shared<ObjectTable>(core, *outbox)),
        references(std::make_shared<References>(core, *objects, *outbox)) {}

  std::once_flag follows_node;
  const std::shared_ptr<Outbox> outbox;
  const std::shared_ptr<ObjectTable> objects;    ///< that it owns
  const std::shared_ptr<References> references;  ///< that it holds
};

/// What Node::rrefs() says; and what Node::metrics() says of it.
/// @{
[[nodiscard]] RRefReport report(const RrefParts& parts);
void add_metrics(const RrefParts& parts, RRefMetrics& metrics);
/// @}

}  // namespace batchrpc::detail
