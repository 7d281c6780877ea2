#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "child.hpp"
#include "two_namespaces.hpp"

// An agent in one network namespace and its observers in another, as on two machines with a cable
// between them.

namespace batchrpc {
namespace namespaces_test {

using test::Child;
using test::TwoNamespaces;

TEST_CASE("an agent and its observers in two network namespaces call each other") {
  const TwoNamespaces spaces;
  if (!spaces.made()) return;
  const Child::Words world{"join=tcp://10.213.0.1:29500", "world=4", "dead_after=1000"};
  const auto with = [&world](const std::string& name, int rank) {
    Child::Words options{"name=" + name, "rank=" + std::to_string(rank)};
    options.insert(options.end(), world.begin(), world.end());
    return options;
  };
  Child agent = TwoNamespaces::start_in(spaces.agent, with("agent", 0));
  std::vector<Child> observers;
  for (int rank = 1; rank <= 3; ++rank)
    observers.push_back(
        TwoNamespaces::start_in(spaces.observers, with("observer" + std::to_string(rank), rank)));
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

}  // namespace namespaces_test
}  // namespace batchrpc
