#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "node/node_core.hpp"
#include "rref/objects.hpp"

// What a few bytes of a peer can make a node do in one turn of its loop.

namespace batchrpc {
namespace long_turns_test {

using namespace std::chrono_literals;
using test::ObjectWorld;

/// The calls of the method that have failed at that node.
std::uint64_t failed(const Node& node) {
  for (const FunctionMetrics& function : node.metrics().functions) {
    if (function.name == "objects::Counter::add") return function.answered.errors.total();
  }
  return 0;
}

TEST_CASE("calls of an object that never comes end by a few hundred at a time") {
  constexpr std::uint64_t kCalls = 2000;
  const ObjectWorld nodes;
  const detail::ObjectId made_up{.owner = detail::NodeAccess::core(nodes.owner)->incarnation(),
                                 .creator = 5,
                                 .number = 1,
                                 .key = 7};
  std::vector<std::uint64_t> seen;  // how many had failed, turn by turn
  std::function<void()> look = [&] {
    seen.push_back(failed(nodes.owner));
    if (seen.back() < kCalls) nodes.world.loop->post(look);
  };
  std::uint64_t ended = 0;
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    nodes.third
        .call<int(detail::ObjectId, int)>("owner", "batchrpc.method:objects::Counter::add", made_up,
                                          1)
        .then([&](const Result<int>& result) {
          CHECK_FALSE(result);
          if (++ended == 1) look();
        });
  }
  nodes.world.run_for(11s);
  CHECK(ended == kCalls);
  REQUIRE_FALSE(seen.empty());
  std::uint64_t most = seen.front();
  for (std::size_t i = 1; i < seen.size(); ++i)
    most = std::max(most, seen[i] - seen[i - 1]);
  CHECK(seen.back() == kCalls);
  CHECK(most <= 512);
}

TEST_CASE("a function of the library takes arguments of eight times their message at most") {
  using Many = std::vector<std::monostate>;  // a word each, and none in the message
  test::NodePair pair;
  const auto expose = [&](const std::string& name) {
    const auto size = [](const Many& many) { return many.size(); };
    detail::NodeAccess::core(pair.b)->expose(
        std::make_shared<detail::TypedFunction<std::decay_t<decltype(size)>,
                                               detail::FunctionTraits<decltype(size)>>>(
            name, size, ExposeOptions{.short_handler = true}));
  };
  expose("size");
  expose("batchrpc.size");
  const auto call = [&](const char* name, std::size_t size) {
    return test::outcome(pair.a.call<std::size_t(Many)>("b", name, Many(size)));
  };
  CHECK(call("size", 20'000).value() == 20'000);
  CHECK(call("batchrpc.size", 8'000).value() == 8'000);
  CHECK_THAT(test::message_of(call("batchrpc.size", 20'000)), Catch::Contains("traversal limit"));
}

}  // namespace long_turns_test
}  // namespace batchrpc
