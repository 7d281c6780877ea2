#include "peers/member.hpp"

#include <unistd.h>

#include <array>
#include <fstream>

namespace batchrpc {

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  // Abstract Unix sockets are seen within one network namespace only.
  std::array<char, 64> network{};
  const auto length = ::readlink("/proc/self/ns/net", network.data(), network.size());
  if (length > 0) boot.append(network.data(), static_cast<std::size_t>(length));
  return boot;
}

}  // namespace batchrpc
