#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "child.hpp"
#include "node/real_nodes.hpp"

// Processes that join one group.

namespace batchrpc {
namespace joining_test {

using test::Child;

bool says(const Child& child, const std::string& part) {
  INFO(child.output());
  return child.output().find(part) != std::string::npos;
}

/// Starts so many processes; the time from when the last of them was loaded to when all had joined,
/// in ms.
double joining_time(int count, const std::string& join) {
  std::vector<Child> children;
  for (int rank = 0; rank < count; ++rank) {
    children.emplace_back(Child::Words{"serving_node", "join=" + join,
                                       "rank=" + std::to_string(rank),
                                       "world=" + std::to_string(count)});
  }
  long long loaded = 0;
  long long joined = 0;
  for (Child& child : children) {
    loaded = std::max(loaded, std::stoll(child.line("loaded ")));
    joined = std::max(joined, std::stoll(child.line("joined ")));
  }
  for (Child& child : children)
    CHECK(std::stoi(child.line("called ")) == count - 1);
  for (Child& child : children)
    child.close_input();
  for (Child& child : children)
    CHECK(child.wait() == 0);
  return static_cast<double>(joined - loaded) / 1000;
}

TEST_CASE("20 processes join within a second of their loading, and each calls each") {
  const std::string file = std::filesystem::temp_directory_path() /
                           ("batchrpc_joining_test_" + std::to_string(::getpid()));
  double best = 1e9;
  for (int tries = 0; tries < 3 && best > 1000; ++tries) {
    best = std::min(best, joining_time(20, "file://" + file));
    std::filesystem::remove(file);
  }
  CHECK(best <= 1000);
}

TEST_CASE("a root whose port another process has says so, and what to do") {
  const Node here(test::real_root("here", 1));
  here.expose("add", [](int a, int b) { return a + b; });
  Child child({"serving_node", "name=second", "join=" + here.address()});
  CHECK(child.wait() == 1);
  CHECK(says(child, here.address()));
  CHECK(says(child, "is taken"));
  CHECK(says(child, "Choose another port"));
  // The one that was there goes on, and the second may join it.
  Child other({"serving_node", "name=third", "rank=-1", "join=" + here.address()});
  CHECK(other.line("called ") == "1");
}

TEST_CASE("a process with the name of another is refused and told who holds it") {
  const Node here(test::real_root("here", 1));
  here.expose("add", [](int a, int b) { return a + b; });
  Child first({"serving_node", "name=taken", "rank=-1", "join=" + here.address()});
  first.line("called ");
  Child second({"serving_node", "name=taken", "rank=-1", "join=" + here.address()});
  CHECK(second.wait() == 1);
  CHECK(says(second, "taken"));
  CHECK(here.call<int(int, int)>("taken", "add", 1, 2).get() == 3);
}

TEST_CASE("a process whose root is not there, and one that lacks peers, say so at their time-out") {
  Child alone(
      {"serving_node", "name=alone", "rank=1", "world=2", "timeout=300", "join=tcp://127.0.0.1:1"});
  CHECK(alone.wait() == 1);
  CHECK(says(alone, "127.0.0.1:1"));
  Child without_file({"serving_node", "name=without_file", "rank=1", "world=2", "timeout=300",
                      "join=unix:///no/such/socket"});
  CHECK(without_file.wait() == 1);
  CHECK(says(without_file, "unix:///no/such/socket"));
  CHECK(says(without_file, "the socket file does not exist"));
  Child root({"serving_node", "rank=0", "world=4", "timeout=300"});
  CHECK(root.wait() == 1);
  CHECK(says(root, "ranks 1, 2, 3"));
}

}  // namespace joining_test
}  // namespace batchrpc
