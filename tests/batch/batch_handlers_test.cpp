#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <numeric>
#include <optional>
#include <string>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"
#include "batchrpc/future/coroutine.hpp"

// What a handler may be, and what it may return.
namespace batchrpc {
namespace {

using namespace std::chrono_literals;
using test::Batches;
using test::doubled;
using test::HeldBatching;
using test::outcome;

/// A batcher on a node in virtual time.
template <class Function>
struct On {
  template <class... Made>
  explicit On(Made&&... made) : batcher(std::forward<Made>(made)...) {
    node.expose("f", batcher);
  }
  test::VirtualWorld world;
  Node node = world.root();
  Batcher<Function> batcher;
};

struct Policy {
  std::vector<int> act(const std::vector<int>& states) {
    ++runs;
    return doubled(states);
  }
  std::vector<int> act_const(std::vector<int> states) const { return states; }
  int runs = 0;
};

TEST_CASE("a handler may be a function, a lambda, or a method with its object") {
  CHECK(On<int(int)>(BatchOptions{}, &doubled).batcher(2).get() == 4);
  CHECK(On<int(int)>(BatchOptions{}, [](std::vector<int> xs) { return xs; }).batcher(2).get() == 2);
  const auto shared = std::make_shared<Policy>();
  CHECK(On<int(int)>(BatchOptions{}, &Policy::act, shared).batcher(3).get() == 6);
  CHECK(shared->runs == 1);
  Policy policy;
  CHECK(On<int(int)>(BatchOptions{}, &Policy::act_const, &policy).batcher(3).get() == 3);
  CHECK(On<int(int)>(BatchOptions{}, &Policy::act, &policy,
                     BatchRules<int>{.key = [](int x) { return x; }})
            .batcher(3)
            .get() == 6);
}

TEST_CASE("a handler learns of its batch who calls, since when, until when, and why it runs") {
  test::VirtualWorld world;
  const Node root = world.root();
  BatchInfo seen;
  const Batcher<int(int)> batcher(
      {.max_wait = 10ms},
      [&](std::vector<int> xs, const BatchInfo& info) {
        seen = info;
        return xs;
      },
      {.key = [](int) { return "all"; }, .priority = [](int x) { return x; }});
  root.expose("f", batcher);
  root.expose("many", batcher.many());
  const Node peer = world.join("peer");
  const TimePoint start = world.loop->now();
  auto local = batcher(1);
  world.run_for(1ms);
  auto remote = peer.peer("root")
                    .with({.timeout = 5s})
                    .call<std::vector<int>(std::vector<int>)>("many", std::vector<int>{2, 3});
  world.run_for(1s);
  CHECK(seen.rows == 3);
  CHECK(seen.padding == 0);
  CHECK(seen.key == "all");
  CHECK(seen.reason == BatchReason::wait);
  CHECK(seen.started == start + 10ms);
  REQUIRE(seen.calls.size() == 2);
  CHECK(seen.calls[0].caller->name == "peer");  // of higher priority
  CHECK(seen.calls[0].caller->rank == peer.rank());
  CHECK(seen.calls[0].first_row == 0);
  CHECK(seen.calls[0].rows == 2);
  CHECK(seen.calls[0].priority == 3);
  CHECK(seen.calls[0].arrived == start + 1ms);
  REQUIRE(seen.calls[0].deadline);
  CHECK(*seen.calls[0].deadline - start > 4900ms);
  CHECK(*seen.calls[0].deadline - start < 5100ms);
  CHECK(seen.calls[1].caller == nullptr);
  CHECK(seen.calls[1].first_row == 2);
  CHECK(seen.calls[1].arrived == start);
  CHECK_FALSE(seen.calls[1].deadline);
}

TEST_CASE("a handler learns what came along with each call of its batch") {
  test::VirtualWorld world;
  const Node root = world.root();
  std::vector<std::string> told;
  const Batcher<int(int)> batcher({.max_size = 3, .max_wait = 1s},
                                  [&](std::vector<int> xs, const BatchInfo& info) {
                                    for (const BatchInfo::Call& call : info.calls) {
                                      std::string text;
                                      for (const auto& [key, value] : call.metadata)
                                        text.append(key).append("=").append(value).append(";");
                                      if (call.trace.valid()) text += call.trace.traceparent();
                                      told.push_back(text);
                                    }
                                    return xs;
                                  });
  root.expose("f", batcher);
  const Node peer = world.join("peer");
  const std::string parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const MetadataEntry entries[] = {{"tenant", "blue"}, {"step", "7"}};
  auto with = peer.peer("root").with({.metadata = entries}).call<int(int)>("f", 1);
  auto traced =
      peer.peer("root").with({.trace = *TraceContext::parse(parent)}).call<int(int)>("f", 2);
  auto local = batcher(3);
  world.run_for(2s);
  std::sort(told.begin(), told.end());
  CHECK(told == std::vector<std::string>{"", parent, "tenant=blue;step=7;"});
  CHECK(std::move(with).get() == 1);
}

/// Counts how often it is encoded.
struct Counted {
  std::string text;
};

}  // namespace

template <>
struct Codec<Counted> {
  using Wire = std::string;
  static inline int encoded = 0;
  static Wire encode(const Counted& value, Encoder&) {
    ++encoded;
    return value.text;
  }
  static Counted decode(Wire&& text, Decoder&) { return {std::move(text)}; }
};

namespace {

TEST_CASE("one result for all callers is encoded once") {
  test::VirtualWorld world;
  const Node root = world.root();
  const Batcher<Counted(int)> batcher({.all_of = {"a", "b", "c"}}, [](const std::vector<int>& xs) {
    return ForAll(Counted{std::to_string(std::accumulate(xs.begin(), xs.end(), 0))});
  });
  root.expose("sum", batcher);
  const std::vector<Node> peers = [&] {
    std::vector<Node> all;
    for (const char* name : {"a", "b", "c"})
      all.push_back(world.join(name));
    return all;
  }();
  Codec<Counted>::encoded = 0;
  auto local = batcher(1);
  std::vector<Future<Counted>> sums;
  for (const Node& peer : peers)
    sums.push_back(peer.call<Counted(int)>("root", "sum", 10));
  world.run_for(1s);
  CHECK(local.get().text == "31");
  for (auto& sum : sums)
    CHECK(sum.get().text == "31");
  CHECK(Codec<Counted>::encoded == 1);
}

TEST_CASE("one result for all goes to callers of many rows as well, once for each row") {
  On<int(int)> sum(BatchOptions{}, [](const std::vector<int>& xs) {
    return make_ready_future(ForAll(std::accumulate(xs.begin(), xs.end(), 0)));
  });
  CHECK(sum.batcher.many()({1, 2, 3}).get() == std::vector<int>{6, 6, 6});
}

TEST_CASE("payloads of one result for all reach every caller") {
  test::NodePair pair;
  const std::string large(100'000, 'x');
  const Batcher<Bytes(int)> batcher({.min_size = 3}, [&](const std::vector<int>&) {
    return ForAll(Bytes::copy(as_bytes(large)));
  });
  pair.a.expose("f", batcher);
  std::vector<Future<Bytes>> futures;
  for (int i = 0; i < 3; ++i)
    futures.push_back(pair.b.call<Bytes(int)>("a", "f", i));
  for (auto& future : futures)
    CHECK(future.get() == Bytes::copy(as_bytes(large)));
}

TEST_CASE("a handler may say for each row what became of it") {
  On<int(int)> halves(BatchOptions{.min_size = 3}, [](const std::vector<int>& xs) {
    std::vector<Result<int>> results;
    for (const int x : xs) {
      if (x % 2 == 0) {
        results.emplace_back(x / 2);
      } else {
        results.emplace_back(std::make_exception_ptr(std::domain_error("odd")));
      }
    }
    return results;
  });
  auto four = halves.batcher(4);
  auto five = halves.batcher(5);
  auto six = halves.batcher(6);
  CHECK(four.get() == 2);
  CHECK(six.get() == 3);
  CHECK(outcome(std::move(five)).message() == "odd");
  CHECK(halves.batcher.statistics().answered == 2);
  CHECK(halves.batcher.statistics().failed == 1);
  CHECK(outcome(halves.batcher.many()({2, 3, 4})).message() == "odd");
  CHECK(halves.batcher.many()({2, 4, 6}).get() == std::vector<int>{1, 2, 3});
}

TEST_CASE("a handler may be a coroutine that takes the batch's description") {
  test::VirtualWorld world;
  const Node node = world.root();
  std::vector<Promise<void>> gates(1);
  Future<void> open = gates[0].get_future();
  const Batcher<int(int)> batcher(
      {}, [&open](const std::vector<int>& xs, const BatchInfo& info) -> Future<std::vector<int>> {
        co_await open;
        std::vector<int> results = xs;
        results[0] += static_cast<int>(info.rows);
        co_return results;
      });
  detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(node));
  auto row = batcher(40);
  world.run_for(1s);
  CHECK_FALSE(row.ready());
  gates[0].set_value();
  CHECK(row.get() == 41);
}

TEST_CASE("with parallelism so many batches run at once, and not one more") {
  HeldBatching b({.max_size = 2, .parallelism = 3});
  for (int x = 1; x <= 10; ++x)
    b.add(x);
  b.world.run_for(1s);
  CHECK(b.batches == Batches{{1, 2}, {3, 4}, {5, 6}});
  CHECK(b.batcher.statistics().running == 3);
  b.answer(1);
  CHECK(b.batches == Batches{{1, 2}, {3, 4}, {5, 6}, {7, 8}});
  for (const std::size_t i : {0U, 2U, 3U, 4U})
    b.answer(i);
  CHECK(b.rows[9].get() == 20);
  CHECK(b.batcher.statistics().running == 0);
}

TEST_CASE("a lone row starts one batch, whatever the parallelism") {
  HeldBatching b({.parallelism = 4});
  b.add(1);
  b.world.run_for(1s);
  CHECK(b.batches == Batches{{1}});
  b.add(2);
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1}, {2}});
  b.answer(1);
  b.answer(0);
  CHECK(b.batcher.statistics().batches == 2);
}

TEST_CASE("no batch runs while somebody else has its exclusive mutex, nor the other way round") {
  const auto model = std::make_shared<AsyncMutex>();
  HeldBatching b({}, {}, {.exclusive = model});
  int learned = 0;
  b.node.expose("learn", [&](int x) { return learned += x; }, {.exclusive = model});
  const Node peer = b.world.join("peer");
  {
    AsyncMutex::Guard guard = model->lock().get();
    b.add(1);
    b.world.run_for(1s);
    b.add(2);  // goes along, since it is there when the batch begins
    CHECK(b.batches.empty());
  }
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1, 2}});
  auto learn = peer.call<int(int)>("root", "learn", 5);
  b.world.run_for(1s);
  CHECK_FALSE(learn.ready());
  CHECK_FALSE(model->try_lock());
  b.answer(0);
  CHECK(learn.get() == 5);
  CHECK(model->try_lock());
}

TEST_CASE("a batcher gives its exclusive mutex back when the rows that it was for are gone") {
  const auto model = std::make_shared<AsyncMutex>();
  HeldBatching b({}, {}, {.exclusive = model});
  std::optional<AsyncMutex::Guard> guard = model->try_lock();
  b.add(1);
  b.world.run_for(0s);
  b.batcher.close();
  guard.reset();
  b.world.run_for(1s);
  CHECK(b.batches.empty());
  CHECK(model->try_lock());
}

// --- isolation

TEST_CASE(
    "rows are isolated from a handler whose future fails, too, and calls of many as a whole") {
  On<int(int)> later(BatchOptions{.min_size = 5, .isolate = Isolate::bisect},
                     [](std::vector<int> xs) -> Future<std::vector<int>> {
                       for (const int x : xs) {
                         if (x < 0)
                           co_await make_failed_future<void>(std::domain_error("poisoned"));
                       }
                       co_return xs;
                     });
  auto one = later.batcher(1);
  auto bad = later.batcher.many()({2, -2, 3});
  auto four = later.batcher(4);
  CHECK(one.get() == 1);
  CHECK(four.get() == 4);
  CHECK(outcome(std::move(bad)).message() == "poisoned");
}

TEST_CASE("a wrong number of results fails the batch, which is not run again") {
  int runs = 0;
  On<int(int)> wrong(BatchOptions{.min_size = 4, .isolate = Isolate::bisect},
                     [&](const std::vector<int>&) {
                       ++runs;
                       return std::vector<int>(5);
                     });
  std::vector<Future<int>> rows;
  for (int i = 0; i < 4; ++i)
    rows.push_back(wrong.batcher(i));
  for (auto& row : rows) {
    const auto result = outcome(std::move(row));
    CHECK(result.code() == ErrorCode::invalid_argument);
    CHECK_THAT(result.message(), Catch::Contains("5 results for 4 rows"));
  }
  CHECK(runs == 1);
  CHECK(wrong.batcher.statistics().failed == 4);
}

TEST_CASE("a short handler is kept out by its exclusive mutex, too") {
  const auto model = std::make_shared<AsyncMutex>();
  HeldBatching b({.max_size = 1, .short_handler = true}, {}, {.exclusive = model});
  const Node peer = b.world.join("peer");
  std::optional<AsyncMutex::Guard> guard = model->try_lock();
  b.call(peer, 1);
  b.world.run_for(1s);
  CHECK(b.batches.empty());
  guard.reset();
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1}});
  CHECK_FALSE(model->try_lock());
  b.answer(0);
}

TEST_CASE("an option of expose() that a batcher has of its own is refused") {
  HeldBatching b({});
  CHECK_THROWS_WITH(b.node.expose("again", b.batcher, {.short_handler = true}),
                    Catch::Contains("BatchOptions::short_handler"));
}

}  // namespace
}  // namespace batchrpc
