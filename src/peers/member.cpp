#include "peers/member.hpp"

#include <unistd.h>

#include <array>
#include <fstream>
#include <optional>

#include "batchrpc/base/address.hpp"
#include "batchrpc/base/error.hpp"

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

std::vector<std::string> usable_addresses(const Member& member, const std::string& own_host) {
  const bool same_host = member.host == own_host && !own_host.empty();
  std::vector<std::string> local;
  std::vector<std::string> remote;
  for (const std::string& text : member.addresses) {
    std::optional<Address> parsed;
    try {
      parsed = Address::parse(text);
    } catch (const InvalidArgument&) {  // of a scheme that a later version knows
      continue;
    }
    const Address& address = *parsed;
    if (address.scheme() == Address::Scheme::inproc) {
      local.push_back(text);
    } else if (address.scheme() == Address::Scheme::tcp) {
      if (same_host || !address.is_loopback()) remote.push_back(text);
    } else if (same_host) {
      local.push_back(text);
    }
  }
  local.insert(local.end(), remote.begin(), remote.end());
  return local;
}

}  // namespace batchrpc
