#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>

#include "child.hpp"

namespace batchrpc::test {

/// Returns the path of a system tool; empty: it is not installed.
[[nodiscard]] inline std::string system_tool(const std::string& name) {
  for (const char* folder : {"/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/"}) {
    if (std::filesystem::exists(folder + name)) return folder + name;
  }
  return {};
}

/// Two network namespaces of this process and a veth pair, like two machines with a cable between
/// them: 10.213.0.1 and .2. There is no other route.
class TwoNamespaces {
 public:
  TwoNamespaces() {
    if (kIp.empty() || ::geteuid() != 0) {
      WARN("left out: network namespaces take root and `ip` (Debian: iproute2)");
      return;
    }
    made_ = ip({"netns", "add", agent}) && ip({"netns", "add", observers}) &&
            ip({"link", "add", link_ + "a", "netns", agent, "type", "veth", "peer", "name",
                link_ + "o", "netns", observers}) &&
            up(agent, link_ + "a", "10.213.0.1/24") && up(observers, link_ + "o", "10.213.0.2/24");
    if (!made_) WARN("left out: no network namespaces can be made here");
  }
  ~TwoNamespaces() {
    if (kIp.empty() || ::geteuid() != 0) return;
    ip({"netns", "del", agent});
    ip({"netns", "del", observers});
  }
  TwoNamespaces(const TwoNamespaces&) = delete;
  TwoNamespaces& operator=(const TwoNamespaces&) = delete;

  /// False: the test must end. The reason was already reported.
  [[nodiscard]] bool made() const { return made_; }

  /// Disconnects the cable: the links of both sides are down.
  bool cut() const { return ip({"-n", agent, "link", "set", link_ + "a", "down"}); }

  /// Loses all packets silently from now on: they go to a hardware address that nobody has. (The
  /// kernel's own ways of dropping packets, netem or a firewall, are not available everywhere.)
  bool lose_packets() const {
    return misdirect(agent, link_ + "a", "10.213.0.2") &&
           misdirect(observers, link_ + "o", "10.213.0.1");
  }
  /// Undoes lose_packets().
  bool carry_packets() const {
    return ip({"-n", agent, "neigh", "del", "10.213.0.2", "dev", link_ + "a"}) &&
           ip({"-n", observers, "neigh", "del", "10.213.0.1", "dev", link_ + "o"});
  }

  /// Starts a serving_node in one of the namespaces.
  [[nodiscard]] static Child start_in(const std::string& space, const Child::Words& options) {
    // Beyond one host nodes need a token.
    Child::Words command{kIp,
                         "netns",
                         "exec",
                         space,
                         "/usr/bin/env",
                         "BATCHRPC_TOKEN=" + std::string(64, 't'),
                         BATCHRPC_BIN_DIR "/serving_node"};
    command.insert(command.end(), options.begin(), options.end());
    return Child(std::move(command));
  }

  const std::string agent = "batchrpc-agent-" + std::to_string(::getpid());
  const std::string observers = "batchrpc-observers-" + std::to_string(::getpid());

 private:
  static inline const std::string kIp = system_tool("ip");

  static bool ip(Child::Words arguments) {
    arguments.insert(arguments.begin(), kIp);
    Child child(std::move(arguments));
    const bool success = child.wait() == 0;
    UNSCOPED_INFO(child.output());
    return success;
  }
  static bool up(const std::string& space, const std::string& device, const std::string& address) {
    return ip({"-n", space, "link", "set", "lo", "up"}) &&
           ip({"-n", space, "address", "add", address, "dev", device}) &&
           ip({"-n", space, "link", "set", device, "up"});
  }
  static bool misdirect(const std::string& space, const std::string& device,
                        const std::string& address) {
    return ip({"-n", space, "neigh", "replace", address, "lladdr", "02:00:00:00:00:01", "dev",
               device, "nud", "permanent"});
  }

  const std::string link_ = "brpc" + std::to_string(::getpid() % 100'000);
  bool made_ = false;
};

}  // namespace batchrpc::test
