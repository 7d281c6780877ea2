#include "peers/member.hpp"

#include <unistd.h>

#include <array>
#include <fstream>

#include "batchrpc/base/error.hpp"

namespace batchrpc {

void check_size(const Member& member) {
  if (member.rank < -1 || member.rank >= kMaxWorldSize) {
    throw JoinFailed("a node asks for rank " + std::to_string(member.rank) +
                     "; ranks are at least 0 and below " + std::to_string(kMaxWorldSize));
  }
  if (member.addresses.size() > kMaxAddresses) {
    throw JoinFailed("a node names " + std::to_string(member.addresses.size()) +
                     " addresses; the limit is " + std::to_string(kMaxAddresses));
  }
  for (const std::string& address : member.addresses) {
    if (address.size() <= kMaxAddressBytes) continue;
    throw JoinFailed("a node names an address of " + std::to_string(address.size()) +
                     " bytes; the limit is " + std::to_string(kMaxAddressBytes));
  }
  if (member.host.size() > kMaxHostBytes) {
    throw JoinFailed("a node names its host by " + std::to_string(member.host.size()) +
                     " bytes; the limit is " + std::to_string(kMaxHostBytes));
  }
}

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
