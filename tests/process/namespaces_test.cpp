#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "child.hpp"

// An agent in one network namespace and its observers in another, as on two machines with a cable
// between them.

namespace batchrpc {
namespace {

using test::Child;

const std::string kIp = [] {
  for (const char* path : {"/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"}) {
    if (std::filesystem::exists(path)) return std::string(path);
  }
  return std::string();
}();

bool ip(Child::Words arguments) {
  arguments.insert(arguments.begin(), kIp);
  Child child(std::move(arguments));
  const bool success = child.wait() == 0;
  UNSCOPED_INFO(child.output());
  return success;
}

/// Two namespaces of this process's own and a veth pair; 10.213.0.1 and .2, without any other way.
class TwoNamespaces {
 public:
  TwoNamespaces() {
    made_ = ip({"netns", "add", agent}) && ip({"netns", "add", observers}) &&
            ip({"link", "add", link_ + "a", "netns", agent, "type", "veth", "peer", "name",
                link_ + "o", "netns", observers}) &&
            up(agent, link_ + "a", "10.213.0.1/24") && up(observers, link_ + "o", "10.213.0.2/24");
  }
  ~TwoNamespaces() {
    ip({"netns", "del", agent});
    ip({"netns", "del", observers});
  }
  TwoNamespaces(const TwoNamespaces&) = delete;
  TwoNamespaces& operator=(const TwoNamespaces&) = delete;

  [[nodiscard]] bool made() const { return made_; }
  bool cut() const { return ip({"-n", agent, "link", "set", link_ + "a", "down"}); }

  const std::string agent = "batchrpc-agent-" + std::to_string(::getpid());
  const std::string observers = "batchrpc-observers-" + std::to_string(::getpid());

 private:
  static bool up(const std::string& space, const std::string& device, const std::string& address) {
    return ip({"-n", space, "link", "set", "lo", "up"}) &&
           ip({"-n", space, "address", "add", address, "dev", device}) &&
           ip({"-n", space, "link", "set", device, "up"});
  }

  const std::string link_ = "brpc" + std::to_string(::getpid() % 100'000);
  bool made_ = false;
};

Child start_in(const std::string& space, const Child::Words& options) {
  Child::Words command{kIp, "netns", "exec", space, BATCHRPC_BIN_DIR "/serving_node"};
  command.insert(command.end(), options.begin(), options.end());
  return Child(command);
}

TEST_CASE("an agent and its observers in two network namespaces call each other") {
  if (kIp.empty() || ::geteuid() != 0) {
    WARN("left out: network namespaces take root and `ip` (Debian: iproute2)");
    return;
  }
  const TwoNamespaces spaces;
  if (!spaces.made()) {
    WARN("left out: no network namespaces can be made here");
    return;
  }
  const Child::Words world{"join=tcp://10.213.0.1:29500", "world=4", "dead_after=1000"};
  const auto with = [&world](const std::string& name, int rank) {
    Child::Words options{"name=" + name, "rank=" + std::to_string(rank)};
    options.insert(options.end(), world.begin(), world.end());
    return options;
  };
  Child agent = start_in(spaces.agent, with("agent", 0));
  std::vector<Child> observers;
  for (int rank = 1; rank <= 3; ++rank)
    observers.push_back(start_in(spaces.observers, with("observer" + std::to_string(rank), rank)));
  // All call all: the agent the observers, where these listen, and these each other on their side.
  CHECK(agent.line("called ") == "3");
  CHECK(agent.line("address ") == "tcp://10.213.0.1:29500");
  for (Child& observer : observers) {
    CHECK(observer.line("called ") == "3");
    CHECK(observer.line("address ").find("tcp://10.213.0.2:") == 0);
  }

  REQUIRE(spaces.cut());
  // Each side loses the other, and not those on its own side.
  for (Child& observer : observers)
    observer.line("is lost agent");
  for (const char* observer : {"observer1", "observer2", "observer3"})
    agent.line(std::string("is lost ") + observer);
  for (Child& observer : observers) {
    CHECK(observer.output().find("is lost observer") == std::string::npos);
    observer.close_input();
  }
  for (Child& observer : observers)
    CHECK(observer.wait() == 0);
  agent.close_input();
  CHECK(agent.wait() == 0);
}

}  // namespace
}  // namespace batchrpc
