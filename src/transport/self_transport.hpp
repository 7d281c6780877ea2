#pragma once

#include <memory>

#include "batchrpc/transport/transport.hpp"

namespace batchrpc::detail {

/// By which a node calls itself that has no InprocNetwork to share: scheme `self`, of no use to
/// others.
[[nodiscard]] std::shared_ptr<Transport> self_transport(const TransportContext& context);

}  // namespace batchrpc::detail
