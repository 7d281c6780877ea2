#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/raw_target.hpp"
#include "node/virtual_world.hpp"

// Large calls, which wait to be asked for, when their connection breaks or their node ends.

namespace batchrpc {
namespace resuming_large_calls_test {

using namespace std::chrono_literals;

TEST_CASE("large calls that wait to be asked for go on after their connection has broken") {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  for (int at = 1; at <= 60; ++at) {
    test::VirtualWorld world(static_cast<std::uint64_t>(at));
    world.network->set_link("a", "b",
                            {.latency = 5ms, .bandwidth = 1'000'000'000, .capacity = 8 * kMiB});
    const Node root = world.root();
    const Node a = world.join("a");
    const Node b = world.join("b");
    int ran = 0;
    std::size_t noted = 0;
    for (const Node* node : {&a, &b}) {
      node->expose("echo", [&ran](Bytes bytes) {
        ++ran;
        return bytes;
      });
      node->expose("note", [&noted](const Bytes& bytes) { noted += bytes.size(); });
      node->expose("twice", test::twice);
    }
    REQUIRE(a.call<int(int)>("b", "twice", 1).get() == 2);
    std::vector<Future<Bytes>> calls;
    for (std::size_t i = 2; i <= 4; ++i) {
      calls.push_back(a.call<Bytes(Bytes)>("b", "echo", Bytes::allocate(i * kMiB)));
      calls.push_back(b.call<Bytes(Bytes)>("a", "echo", Bytes::allocate(i * kMiB)));
    }
    a.peer("b").notify<void(Bytes)>("note", Bytes::allocate(3 * kMiB));
    for (const int wait : {500, 300}) {  // the wait for the credit lasts 5 to 15 ms
      world.run_for(std::chrono::microseconds(at * wait));
      world.network->cut("a", "b");
    }
    world.run_for(20s);
    INFO("cut after " << at * 500 << " us");
    for (std::size_t i = 0; i < calls.size(); ++i)
      CHECK(std::move(calls[i]).get().size() == (2 + i / 2) * kMiB);
    CHECK(ran == 6);
    CHECK(noted == 3 * kMiB);
  }
}

TEST_CASE("a node that ends sends what has yet to be asked for, and else says that it was not") {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  for (const bool reads : {true, false}) {
    test::VirtualWorld world;
    world.network->set_link("a", "b", {.latency = 300ms, .capacity = 8 * kMiB});
    const Node root = world.root();
    const Node b = world.join("b");
    Node a = world.join("a");
    std::size_t noted = 0;
    b.expose("note", [&noted](const Bytes& bytes) { noted += bytes.size(); });
    b.expose("twice", test::twice);
    REQUIRE(a.call<int(int)>("b", "twice", 1).get() == 2);
    if (!reads) world.network->partition("a", "b");
    a.peer("b").notify<void(Bytes)>("note", Bytes::allocate(5 * kMiB));
    const std::vector<std::string> left = a.shutdown(3s);
    world.run_for(3s);
    if (reads) {
      CHECK(left.empty());
      CHECK(noted == 5 * kMiB);
    } else {
      CHECK(std::count(left.begin(), left.end(),
                       "4194304 bytes to b, which has not granted credit for them") == 1);
      CHECK(noted == 0);
    }
  }
}

}  // namespace resuming_large_calls_test
}  // namespace batchrpc
