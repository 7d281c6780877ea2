#pragma once

#include <memory>

#include "batchrpc/transport/transport.hpp"
#include "transport/loop_core.hpp"

namespace batchrpc::detail {

/// Listens at once at an address of TCP or of a Unix socket; throws as Transport::listen() does.
[[nodiscard]] std::unique_ptr<Listener> listen_on_socket(const std::shared_ptr<LoopCore>& core,
                                                         const Address& address,
                                                         Transport::AcceptHandler handler);

}  // namespace batchrpc::detail
