#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"

// A process that has no file descriptors left.
namespace batchrpc {
namespace few_descriptors_test {

using namespace std::chrono_literals;
using test::outcome;

/// Takes all descriptors of this process, until it is destroyed.
class AllTaken {
 public:
  AllTaken() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{.rlim_cur = 200, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int taken = 0; (taken = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
      taken_.push_back(taken);
  }
  ~AllTaken() {
    for (const int taken : taken_)
      ::close(taken);
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  AllTaken(const AllTaken&) = delete;
  AllTaken& operator=(const AllTaken&) = delete;

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

TEST_CASE("a node that finds no descriptors left says whose limit it is, and what to do") {
  const NodeOptions options = test::real_root("root", 1);
  const AllTaken all;
  CHECK_THROWS_AS(Node(options), Overloaded);
  CHECK_THROWS_WITH(Node(options), Catch::Contains("no file descriptors left, and may have 200") &&
                                       Catch::Contains("ulimit -n"));
}

TEST_CASE("a call that finds no descriptor for its connection says so", "[threads]") {
  NodeOptions options = test::real_root("root", 1);
  options.liveness.dead_after = 1s;
  options.liveness.ping_after = 100ms;
  options.logging.level = LogLevel::off;
  const Node root(options);
  options.join = root.address();
  options.rank = -1;
  options.name = "a";
  const Node a(options);
  options.name = "b";
  const Node b(options);
  b.expose("add", [](int x, int y) { return x + y; });
  REQUIRE(a.wait_for_peer("b").get().name == "b");
  {
    const AllTaken all;
    const auto result = outcome(a.call<int(int, int)>("b", "add", 1, 2));
    REQUIRE_FALSE(result);
    CHECK_FALSE(test::may_have_run(result.error()));
    CHECK_THAT(result.message(), Catch::Contains("this process has no file descriptors left"));
  }
  (void)a.wait_for_peer("b", 20s).get();
  CHECK(a.call<int(int, int)>("b", "add", 1, 2).get() == 3);
}

}  // namespace few_descriptors_test
}  // namespace batchrpc
