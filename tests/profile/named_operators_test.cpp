#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/profile.hpp"
#include "batchrpc/trace/operator_source.hpp"
#include "node/virtual_world.hpp"

// What a node does with NodeOptions::profiling.operators.
namespace batchrpc {
namespace named_operators_test {

// Stands in for LibTorch's, on the test's one thread.
class Source final : public detail::OperatorSource {
 public:
  detail::OperatorSink* exchange_sink(detail::OperatorSink* sink) const noexcept override {
    return std::exchange(sink_, sink);
  }
  bool is_watched() const noexcept override { return watched; }
  std::shared_ptr<void> begin_range(const std::string& name) const override {
    ranges.push_back(name);
    auto range = std::make_shared<int>();
    last_range = range;
    return range;
  }
  void run(const std::string& name) const {
    if (sink_ != nullptr) {
      sink_->add({.name = name, .begin = sink_->now(), .end = sink_->now()});
    }
  }
  [[nodiscard]] bool has_sink() const { return sink_ != nullptr; }

  bool watched = false;
  mutable std::vector<std::string> ranges;
  mutable std::weak_ptr<void> last_range;

 private:
  mutable detail::OperatorSink* sink_ = nullptr;
};

Node with(NodeOptions options, const Source& source) {
  options.profiling.operators = &source;
  return Node(std::move(options));
}

std::vector<std::string> names_of(const CallRecord& call) {
  std::vector<std::string> names;
  for (const OperatorRecord& ran : call.operators)
    names.push_back(ran.name);
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("operators of a handler are recorded by the source of its node, while it runs") {
  const Source source;
  const test::VirtualWorld world;
  const Node a = world.root("a");
  const Node b = with(world.joining("b"), source);
  const Node plain = world.join("plain");
  const auto work = [&] { source.run("aten::relu"); };
  b.expose("work", work);
  plain.expose("work", work);
  a.call<void()>("b", "work").get();  // nobody records it
  CHECK_FALSE(source.has_sink());
  const Profiler profiler(a);
  a.call<void()>("b", "work").get();
  CHECK_FALSE(source.has_sink());
  a.call<void()>("plain", "work").get();
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 2);
  CHECK(names_of(recording.calls[0]) == Names{"aten::relu"});
  CHECK(names_of(recording.calls[1]).empty());
}

TEST_CASE("a handler that waits for one with another source goes on with its own") {
  const Source of_b;
  const Source of_c;
  const test::VirtualWorld world;
  const Node a = world.root("a");
  const Node b = with(world.joining("b"), of_b);
  const Node c = with(world.joining("c"), of_c);
  c.expose("inner", [&] {
    of_c.run("inner");
    of_b.run("of nobody");
  });
  b.expose("outer", [&]() -> Future<void> {
    of_b.run("before");
    auto inner = b.call<void()>("c", "inner");
    co_await std::move(inner);
    of_b.run("after");
  });
  const Profiler profiler(a);
  a.call<void()>("b", "outer").get();
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 1);
  CHECK(names_of(recording.calls[0]) == Names{"before", "after"});
  REQUIRE(recording.calls[0].calls.size() == 1);
  CHECK(names_of(recording.calls[0].calls[0]) == Names{"inner"});
  CHECK_FALSE(of_b.has_sink());
  CHECK_FALSE(of_c.has_sink());
}

TEST_CASE("the handler of a batch has the source of the node that exposes it") {
  const Source source;
  const test::VirtualWorld world;
  const Node a = world.root("a");
  const Node b = with(world.joining("b"), source);
  const Batcher<int(int)> batcher({.max_size = 2, .max_wait = std::chrono::milliseconds(1)},
                                  [&](const std::vector<int>& rows) {
                                    source.run("aten::relu");
                                    return rows;
                                  });
  b.expose("batched", batcher);
  const Profiler profiler(a);
  auto one = a.call<int(int)>("b", "batched", 1);
  auto two = a.call<int(int)>("b", "batched", 2);
  when_all(std::move(one), std::move(two)).get();
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 2);
  for (const CallRecord& call : recording.calls)
    CHECK(names_of(call) == Names{"aten::relu"});
}

TEST_CASE("calls of a node are ranges in the profile that its source watches") {
  Source source;
  const test::VirtualWorld world;
  const Node a = with(world.options("a"), source);
  const Node b = world.join("b");
  b.expose("work", [] {});
  a.call<void()>("b", "work").get();
  CHECK(source.ranges.empty());
  source.watched = true;
  auto called = a.call<void()>("b", "work");
  CHECK(source.ranges == Names{"rpc_async#work(a -> b)"});
  CHECK_FALSE(source.last_range.expired());
  std::move(called).get();
  CHECK(source.last_range.expired());
  source.ranges.clear();
  a.expose("back", [] {});
  b.call<void()>("a", "back").get();  // of a node without
  CHECK(source.ranges.empty());
}

}  // namespace named_operators_test
}  // namespace batchrpc
