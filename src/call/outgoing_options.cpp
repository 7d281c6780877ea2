#include <memory>

#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/call/call_extras.hpp"
#include "batchrpc/call/caller.hpp"
#include "call/local_node.hpp"

namespace batchrpc {

detail::OutgoingOptions detail::outgoing(const CallOptions& options, LocalNode* node) {
  OutgoingOptions how;
  how.timeout = options.timeout;
  if (how.timeout == Duration::zero() && node != nullptr) how.timeout = node->call_timeout();
  how.detached = options.detached;
  how.cancel_when_dropped = options.cancel_when_dropped;
  how.retry = options.retry;
  const bool may_be_recorded = node != nullptr && node->may_record();
  const bool asks = !options.metadata.empty() || options.inherit_metadata || options.trace.valid();
  if (may_be_recorded || asks) {
    auto extras = std::allocate_shared<OutgoingExtras>(PoolAllocator<OutgoingExtras>());
    extras->parent = options.trace;
    extras->inherits = options.inherit_metadata;
    for (const MetadataEntry& entry : options.metadata)
      extras->metadata.emplace_back(entry.key, entry.value);
    extras->may_be_recorded = may_be_recorded;
    if (may_be_recorded) extras->started = node->loop()->now();
    how.extras = std::move(extras);
  }
  return how;
}

}  // namespace batchrpc
