#pragma once

#include <memory>

#include "batchrpc/transport/stream.hpp"
#include "transport/asio_core.hpp"

namespace batchrpc::detail {

/// Listens at once; throws as Transport::listen() does.
[[nodiscard]] std::unique_ptr<Listener> listen_on_socket(const std::shared_ptr<AsioCore>& core,
                                                         const Address& address,
                                                         Transport::AcceptHandler handler);

}  // namespace batchrpc::detail
