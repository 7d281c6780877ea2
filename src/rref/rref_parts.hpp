#pragma once

#include <memory>
#include <mutex>

#include "rref/object_table.hpp"
#include "rref/outbox.hpp"
#include "rref/references.hpp"

namespace batchrpc::detail {

/// What a node keeps of remote references: an extension of the LocalNode.
struct RrefParts {
  explicit RrefParts(LocalNode& node)
      : outbox(std::make_shared<Outbox>(node)),
        objects(std::make_shared<ObjectTable>(node, *outbox)),
        references(std::make_shared<References>(node, *objects, *outbox)) {}

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
