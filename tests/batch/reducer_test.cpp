#include "batchrpc/batch/reducer.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"

namespace batchrpc {
namespace reducer_test {

using namespace std::chrono_literals;
using test::outcome;

/// Notes what happens, and adds rows up; refuses negative ones.
struct Sum {
  void begin() {
    sum = 0;
    log->push_back("begin");
  }
  void accumulate(int x) {
    if (x < 0) throw std::domain_error("negative");
    sum += x;
    log->push_back("+" + std::to_string(x));
  }
  int finish(const BatchInfo& info) {
    log->push_back("finish " + std::to_string(info.rows));
    if (sum == 13) throw std::domain_error("13");
    return sum;
  }
  std::vector<std::string>* log;
  int sum = 0;
};

struct Reducing {
  explicit Reducing(BatchOptions options) : batcher(std::move(options), reduce(Sum{&log})) {
    node.expose("sum", batcher);
    for (const char* name : {"a", "b", "c"})
      peers.push_back(world.join(name));
  }
  Future<int> call(std::size_t peer, int x) {
    auto future = peers[peer].call<int(int)>("root", "sum", x);
    world.run_for(0s);
    return future;
  }
  std::vector<std::string> log;
  test::VirtualWorld world;
  Node node = world.root();
  Batcher<int(int)> batcher;
  std::vector<Node> peers;
};

TEST_CASE("rows are accumulated as they come, and one result answers all") {
  Reducing r({.all_of = {"a", "b", "c"}});
  auto first = r.call(0, 1);
  CHECK(r.log == std::vector<std::string>{"begin", "+1"});
  auto second = r.call(1, 2);
  CHECK(r.log.back() == "+2");
  CHECK_FALSE(first.ready());
  auto third = r.call(2, 3);
  CHECK(r.log == std::vector<std::string>{"begin", "+1", "+2", "+3", "finish 3"});
  CHECK(first.get() == 6);
  CHECK(second.get() == 6);
  CHECK(third.get() == 6);
  // And anew.
  r.log.clear();
  auto again = r.call(0, 5);
  r.batcher.flush();
  CHECK(again.get() == 5);
  CHECK(r.log == std::vector<std::string>{"begin", "+5", "finish 1"});
}

TEST_CASE("a row that cannot be accumulated fails alone, and spoils nothing") {
  Reducing r({.min_size = 2});
  auto good = r.call(0, 1);
  auto bad = r.call(1, -1);
  const auto failed = outcome(std::move(bad));
  CHECK(failed.code() == ErrorCode::remote_error);
  CHECK_THAT(failed.message(), Catch::Contains("negative"));
  CHECK_FALSE(good.ready());
  auto other = r.call(2, 2);
  CHECK(good.get() == 3);
  CHECK(other.get() == 3);
  CHECK(r.batcher.statistics().failed == 1);
}

TEST_CASE("when finish throws its rows fail, and the next batch works") {
  Reducing r({.min_size = 2});
  auto a = r.call(0, 6);
  auto b = r.call(1, 7);
  CHECK_THAT(outcome(std::move(a)).message(), Catch::Contains("13"));
  CHECK_FALSE(outcome(std::move(b)));
  auto c = r.call(0, 1);
  auto d = r.call(1, 2);
  CHECK(c.get() == 3);
  CHECK(d.get() == 3);
}

TEST_CASE("a row that was accumulated stays part of its batch when its caller dies") {
  Reducing r({.all_of = {"a", "b", "c"}});
  auto first = r.call(0, 1);
  auto second = r.call(1, 10);
  r.world.kill("b");
  r.world.run_for(0s);
  CHECK_FALSE(first.ready());
  auto third = r.call(2, 100);
  CHECK(first.get() == 111);
  CHECK(third.get() == 111);
  CHECK(r.log.back() == "finish 3");
}

TEST_CASE("a group whose last missing member dies is complete") {
  Reducing r({.all_of = {"a", "b", "c"}});
  auto first = r.call(0, 1);
  auto second = r.call(1, 10);
  r.world.kill("c");
  r.world.run_for(0s);
  CHECK(first.get() == 11);
  CHECK(second.get() == 11);
}

TEST_CASE("order_by_peer accumulates in the order of ranks, when the batch is complete") {
  Reducing r({.all_of = {"a", "b", "c"}, .order_by_peer = true});
  auto third = r.call(2, 3);
  auto first = r.call(0, 1);
  CHECK(r.log.empty());
  auto second = r.call(1, 2);
  CHECK(second.get() == 6);
  CHECK(r.log == std::vector<std::string>{"begin", "+1", "+2", "+3", "finish 3"});
}

TEST_CASE("rows of one call are accumulated one by one, each with the result") {
  Reducing r({.min_size = 3});
  auto many = r.batcher.many()({1, 2, 3});
  CHECK(many.get() == std::vector<int>{6, 6, 6});
  CHECK(r.log == std::vector<std::string>{"begin", "+1", "+2", "+3", "finish 3"});
}

/// Finishes later.
struct Later {
  void accumulate(int x) { sum += x; }
  Future<int> finish() {
    return gates->emplace_back().get_future().then([s = sum] { return s; });
  }
  std::vector<Promise<void>>* gates;
  int sum = 0;
};

TEST_CASE("rows that come while a batch finishes belong to the next") {
  std::vector<Promise<void>> gates;
  test::VirtualWorld world;
  const Node node = world.root();
  const Batcher<int(int)> batcher({.min_size = 2}, reduce(Later{&gates}));
  detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(node));
  auto a = batcher(1);
  auto b = batcher(2);
  world.run_for(0s);
  REQUIRE(gates.size() == 1);
  auto c = batcher(10);
  auto d = batcher(20);
  world.run_for(1s);
  CHECK(gates.size() == 1);
  gates[0].set_value();
  CHECK(a.get() == 3);
  world.run_for(0s);
  REQUIRE(gates.size() == 2);
  gates[1].set_value();
  CHECK(c.get() == 33);  // it has no begin(), and goes on adding
  CHECK(d.get() == 33);
}

TEST_CASE(
    "a reducer that is closed while rows wait in it fails them, and one that drains finishes") {
  {
    Reducing r({.min_size = 5});
    auto row = r.call(0, 1);
    r.batcher.close();
    r.world.run_for(0s);
    CHECK(outcome(std::move(row)).code() == ErrorCode::shut_down);
  }
  Reducing r({.min_size = 5});
  auto row = r.call(0, 1);
  auto closed = r.batcher.close(BatchClose::drain);
  CHECK(row.get() == 1);
  closed.get();
}

TEST_CASE("what does not go with a reducer is refused by name") {
  std::vector<std::string> log;
  const auto make = [&](const BatchOptions& options, BatchRules<int> rules = {}) {
    const Batcher<int(int)> batcher(options, reduce(Sum{&log}), std::move(rules));
  };
  CHECK_NOTHROW(make({}));
  CHECK_THROWS_WITH(make({.parallelism = 2}), Catch::Contains("BatchOptions::parallelism"));
  CHECK_THROWS_WITH(make({.preferred_sizes = {1}}), Catch::Contains("preferred_sizes"));
  CHECK_THROWS_WITH(make({.isolate = Isolate::bisect}), Catch::Contains("BatchOptions::isolate"));
  CHECK_THROWS_WITH(make({}, {.key = [](int) { return 1; }}), Catch::Contains("BatchRules"));
}

struct AtEnd {
  explicit AtEnd(std::function<void()> function) : what(std::move(function)) {}
  ~AtEnd() { what(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

  const std::function<void()> what;
};
struct Refusing {
  void accumulate(const std::shared_ptr<AtEnd>& /*row*/) { throw std::domain_error("no"); }
  int finish() { return 0; }
};

TEST_CASE("what a row that failed leaves behind may use its batcher") {
  int used = 0;
  test::VirtualWorld world;
  const Node node = world.root();
  const Batcher<int(std::shared_ptr<AtEnd>)> batcher({}, reduce(Refusing{}));
  detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(node));
  auto failed = batcher(std::make_shared<AtEnd>([&] { used += batcher.statistics().rows == 1; }));
  world.run_for(0s);
  CHECK_FALSE(outcome(std::move(failed)));
  CHECK(used == 1);
}

}  // namespace reducer_test
}  // namespace batchrpc
