#pragma once

#include <memory>

#include "batchrpc/base/log.hpp"
#include "batchrpc/transport/transport.hpp"
#include "transport/accept_limits.hpp"
#include "transport/loop_core.hpp"

namespace batchrpc::detail {

/// What a listener on a socket needs of its transport.
struct ListenerParts {
  std::shared_ptr<LoopCore> core;
  Log log;
  /// Null: it admits any number of connections.
  std::shared_ptr<AcceptLimits> limits{};
};

/// Listens at once at an address of TCP or of a Unix socket; throws as Transport::listen() does.
[[nodiscard]] std::unique_ptr<Listener> listen_on_socket(const ListenerParts& parts,
                                                         const Address& address,
                                                         Transport::AcceptHandler handler);

}  // namespace batchrpc::detail
