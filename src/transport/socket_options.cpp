#include "transport/socket_options.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "transport/socket_address.hpp"

namespace batchrpc::detail {
void set_options(int fd) noexcept {
  const SocketAddress own = own_address(fd);
  if (own.family() == AF_UNIX) {
    // Large chunks as a whole, so that reading and writing processes need not take turns within
    // one; the system may allow less (net.core.wmem_max). In bytes.
    constexpr int kSendBuffer = 1024 * 1024;
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
    return;
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Enough for the kernel to send while this process comes round; the more lies there, the longer
  // waits a small call behind a large payload. In bytes.
  constexpr int kUnsentBytes = 32 * 1024;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof kUnsentBytes);
  // Where BBR is the system's, it spaces what is sent by timers, here too. Reno sends as its window
  // allows, and everybody may choose it, unless an administrator has said otherwise.
  constexpr char kReno[] = "reno";
  if (has_one_address(own, peer_address(fd)))
    ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kReno, sizeof kReno - 1);
}

}  // namespace batchrpc::detail
