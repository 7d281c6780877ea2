#include "common/free_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace batchrpc_examples {

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool found = socket >= 0 && ::bind(socket, generic, size) == 0 &&
                     ::getsockname(socket, generic, &size) == 0;
  const int error = errno;
  if (socket >= 0) ::close(socket);
  if (!found) throw std::system_error(error, std::generic_category(), "no free port");
  return ntohs(address.sin_port);
}

}  // namespace batchrpc_examples
