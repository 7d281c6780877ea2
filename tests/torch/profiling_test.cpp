#include <torch/csrc/autograd/profiler_legacy.h>
#include <torch/torch.h>

#include <catch2/catch.hpp>

#include "batchrpc/profile.hpp"
#include "batchrpc/torch.hpp"
#include "node/virtual_world.hpp"

// LibTorch's operators in the records of calls.
namespace batchrpc {
namespace profiling_test {

using namespace std::chrono_literals;
using at::Tensor;

struct Three {
  Three() {
    expose_operators(b, {"aten::add", "aten::mul"});
    b.expose("rands", [] { return torch::add(torch::rand({2, 2}), torch::rand({2, 2})); });
    b.expose("plain", [](int number) { return number; });
  }
  static Node with_operators(NodeOptions options) {
    options.profiling.operators = torch_operators();
    return Node(std::move(options));
  }
  test::VirtualWorld world;
  Node a = with_operators(world.options("a"));
  Node b = with_operators(world.joining("b"));
  Node c = with_operators(world.joining("c"));
  Tensor ones = torch::ones({2, 2});
};

std::vector<std::string> names_of(const CallRecord& call) {
  std::vector<std::string> names;
  for (const OperatorRecord& ran : call.operators)
    names.push_back(ran.name);
  return names;
}
std::size_t count(const CallRecord& call, const std::string& name) {
  const auto names = names_of(call);
  return static_cast<std::size_t>(std::count(names.begin(), names.end(), name));
}

TEST_CASE("a built-in operator that is called by name is recorded where it ran") {
  Three nodes;
  const Profiler profiler(nodes.a);
  auto sum = nodes.a.call<Tensor(Tensor, Tensor)>("b", "aten::add", nodes.ones, nodes.ones);
  auto product = nodes.a.call<Tensor(Tensor, Tensor)>("b", "aten::mul", nodes.ones, nodes.ones);
  when_all(std::move(sum), std::move(product)).get();
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 2);
  CHECK(names_of(recording.calls[0]) == std::vector<std::string>{"aten::add"});
  CHECK(names_of(recording.calls[1]) == std::vector<std::string>{"aten::mul"});
  const OperatorRecord& add = recording.calls[0].operators[0];
  CHECK(add.thread == recording.calls[0].callee.thread);
  CHECK_FALSE(add.shared);
  const ProfileTable table = profiler.key_averages();
  const auto row = std::find_if(table.rows().begin(), table.rows().end(), [](const auto& r) {
    return r.name == "rpc_async#aten::add(a -> b)#remote_op: add";
  });
  REQUIRE(row != table.rows().end());
  CHECK(row->node_id == 1);
  CHECK(row->count == 1);
}

TEST_CASE("operators of a function of the program's are recorded, for profiled calls only") {
  Three nodes;
  nodes.a.call<Tensor()>("b", "rands").get();
  {
    const Profiler profiler(nodes.a);
    nodes.a.call<Tensor()>("b", "rands").get();
    nodes.a.call<int(int)>("b", "plain", 1).get();
    (void)torch::add(nodes.ones, nodes.ones);  // the caller's own
    const Recording recording = profiler.recording();
    REQUIRE(recording.calls.size() == 2);
    CHECK(count(recording.calls[0], "aten::rand") == 2);
    CHECK(count(recording.calls[0], "aten::add") == 1);
    CHECK(recording.calls[1].operators.empty());
  }
  const Profiler without(nodes.a, {.operators = false});
  nodes.a.call<Tensor()>("b", "rands").get();
  CHECK(without.recording().calls.at(0).operators.empty());
}

TEST_CASE("regions of the program are recorded around the operators that ran in them") {
  Three nodes;
  nodes.b.expose("step", [&] {
    RECORD_USER_SCOPE("forward");
    return torch::add(nodes.ones, nodes.ones);
  });
  const Profiler profiler(nodes.a);
  nodes.a.call<Tensor()>("b", "step").get();
  const CallRecord call = profiler.recording().calls.at(0);
  const auto find = [&](const std::string& name) {
    return std::find_if(call.operators.begin(), call.operators.end(),
                        [&](const auto& each) { return each.name == name; });
  };
  const auto region = find("forward");
  const auto add = find("aten::add");
  REQUIRE(region != call.operators.end());
  REQUIRE(add != call.operators.end());
  CHECK(region->begin <= add->begin);
  CHECK(region->end >= add->end);
  CHECK(std::count_if(call.operators.begin(), call.operators.end(), [](const auto& each) {
          return each.name.find("rpc") != std::string::npos;  // the library's own regions
        }) == 0);
  CHECK_THAT(profiler.key_averages().table(), Catch::Contains("#remote_op: forward"));
}

TEST_CASE("a node without NodeOptions::profiling.operators tells of calls, and of no operators") {
  Three nodes;
  const Node plain = nodes.world.join("plain");
  plain.expose("rands", [] { return torch::rand({2, 2}); });
  plain.expose("passed_on", [&] { return plain.call<Tensor()>("b", "rands"); });
  const Profiler profiler(nodes.a);
  nodes.a.call<Tensor()>("plain", "rands").get();
  nodes.a.call<Tensor()>("plain", "passed_on").get();
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 2);
  CHECK(recording.calls[0].operators.empty());
  CHECK(recording.calls[1].operators.empty());
  CHECK(count(recording.calls[1].calls.at(0), "aten::rand") == 2);  // of the node below it
}

TEST_CASE("operators that a handler runs after it has waited are its call's") {
  Three nodes;
  nodes.c.expose("rest", [] {});
  nodes.b.expose("later", [&]() -> Future<Tensor> {
    const Tensor before = torch::relu(nodes.ones);
    auto rest = nodes.b.call<void()>("c", "rest");
    co_await std::move(rest);
    co_return torch::sigmoid(before);
  });
  const Profiler profiler(nodes.a);
  auto one = nodes.a.call<Tensor()>("b", "later");
  auto two = nodes.a.call<Tensor()>("b", "later");
  when_all(std::move(one), std::move(two)).get();
  for (const CallRecord& call : profiler.recording().calls) {
    CHECK(count(call, "aten::relu") == 1);
    CHECK(count(call, "aten::sigmoid") == 1);
    CHECK(call.calls.size() == 1);
  }
}

TEST_CASE("operators come with nested calls through three nodes, under their names") {
  Three nodes;
  nodes.c.expose("leaf", [] { return torch::sigmoid(torch::ones({2})); });
  nodes.b.expose("middle", [&]() -> Future<Tensor> { return nodes.b.call<Tensor()>("c", "leaf"); });
  const Profiler profiler(nodes.a);
  nodes.a.call<Tensor()>("b", "middle").get();
  const std::string table = profiler.key_averages().table();
  CHECK(table.find("rpc_async#middle(a -> b)#remote_op: rpc_async#leaf(b -> c)#remote_op: "
                   "sigmoid") != std::string::npos);
}

TEST_CASE("a batch's operators are those of all its rows, and marked") {
  Three nodes;
  const Batcher<Tensor(Tensor)> batcher({.max_size = 3, .max_wait = 1ms},
                                        [](const Tensor& rows) { return torch::sigmoid(rows); });
  nodes.b.expose("batched", batcher);
  const Profiler profiler(nodes.a);
  std::vector<Future<Tensor>> answers;
  for (int i = 0; i < 3; ++i)
    answers.push_back(nodes.a.call<Tensor(Tensor)>("b", "batched", torch::ones({4})));
  when_all(std::move(answers)).get();
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 3);
  for (const CallRecord& call : recording.calls) {
    CHECK(call.batch.rows == 3);
    CHECK(count(call, "aten::sigmoid") == 1);
    for (const OperatorRecord& ran : call.operators)
      CHECK(ran.shared);
  }
  CHECK(profiler.key_averages().table().find("#remote_op: sigmoid (shared)") != std::string::npos);
}

TEST_CASE("the program's own profiler of LibTorch shows the calls") {
  namespace profiler = torch::autograd::profiler;
  Three nodes;
  using torch::profiler::impl::ProfilerConfig;
  using torch::profiler::impl::ProfilerState;
  profiler::enableProfilerLegacy(ProfilerConfig(ProfilerState::CPU));
  nodes.a.call<int(int)>("b", "plain", 1).get();
  const auto events = profiler::disableProfilerLegacy();
  nodes.a.call<int(int)>("b", "plain", 2).get();  // it is over
  int calls = 0;
  for (const auto& of_thread : events) {
    for (const auto& event : of_thread) {
      if (std::string(event.name()) == "rpc_async#plain(a -> b)" && event.kindStr() == "push")
        ++calls;
    }
  }
  CHECK(calls == 1);
}

}  // namespace profiling_test
}  // namespace batchrpc
