#pragma once

#include <memory>

#include "batchrpc/base/export.hpp"
#include "batchrpc/transport/socket_loop.hpp"
#include "batchrpc/transport/stream.hpp"

namespace batchrpc {

namespace detail {
class SocketConnects;
}

/// TCP and Unix sockets on a SocketLoop: the schemes `tcp`, `unix` (a path) and `unix-abstract`.
///
/// TCP: names are resolved without holding up the loop (by listen(): at once, on the calling
/// thread), and their addresses tried in turn, each for its share of the time left; small writes
/// leave at once (TCP_NODELAY).
///
/// Unix paths: the socket of a process that has ended is replaced, that of one that lives is
/// "taken"; the file is removed with the listener. Only processes that may write to the file can
/// connect.
///
/// No SIGPIPE is ever raised. When the process has run out of descriptors, accepting pauses and is
/// tried again.
class BATCHRPC_EXPORT SocketTransport final : public Transport {
 public:
  /// Keeps the loop alive.
  explicit SocketTransport(std::shared_ptr<SocketLoop> loop);
  /// Gives up the connects under way; their handlers are destroyed. Streams and listeners live on.
  ~SocketTransport() override;

  std::unique_ptr<Listener> listen(const Address& address, AcceptHandler handler) override;
  void connect(const Address& address, TimePoint deadline, ConnectHandler handler) override;

 private:
  std::shared_ptr<SocketLoop> loop_;
  std::shared_ptr<detail::SocketConnects> connects_;
};

}  // namespace batchrpc
