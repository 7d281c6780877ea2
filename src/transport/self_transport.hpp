#pragma once

#include <memory>

#include "batchrpc/transport/transport.hpp"

namespace batchrpc::detail {

/// Makes the transport by which a node without an InprocNetwork calls itself. Its scheme `self` is
/// of no use to other nodes.
[[nodiscard]] std::shared_ptr<Transport> self_transport(const TransportContext& context);

}  // namespace batchrpc::detail
