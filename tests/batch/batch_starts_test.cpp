#include "batch/batch_starts.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string_view>
#include <utility>

#include "batch/accumulation.hpp"

namespace batchrpc::detail {
namespace batch_starts_test {

using namespace std::chrono_literals;

struct SomeCall : BatchCall {
  void fail(const std::exception_ptr& /*error*/, bool /*began*/) noexcept override {}
};

struct Starts {
  explicit Starts(const BatchOptions& options) : starts(options) {
    waiting.configure(options, [](std::string_view /*name*/) { return true; });
  }
  void add(TimePoint at, std::size_t rows = 1) {
    auto call = std::make_unique<SomeCall>();
    call->arrived = at;
    call->rows = rows;
    (void)waiting.add(std::move(call));
  }
  [[nodiscard]] std::size_t start(TimePoint now = {}) { return starts.start(waiting, now).batches; }

  WaitingCalls waiting;
  BatchStarts starts;
};

TEST_CASE("a batch that starts takes what has come until it begins, and one runs at a time") {
  Starts s({.max_size = 4});
  CHECK(s.start() == 0);
  s.add({});
  CHECK(s.start() == 1);
  CHECK(s.start() == 0);  // it has not begun
  CHECK(s.starts.any_starting());
  s.add({});
  const TakenBatch batch = s.starts.take(s.waiting, {});
  CHECK(batch.rows == 2);
  CHECK(batch.reason == BatchReason::idle);
  CHECK(s.starts.running() == 1);
  CHECK_FALSE(s.starts.any_starting());
  s.add({});
  CHECK(s.start() == 0);
  s.starts.ended({}, TimePoint(8us), 2, 1, {});
  CHECK(s.starts.retry_after() == 8us);
  CHECK(s.start() == 1);
}

TEST_CASE("a batch whose calls are gone, or that must not run any more, takes nothing") {
  Starts s({.max_size = 1, .parallelism = 2});
  s.add({});
  s.add({});
  CHECK(s.start() == 2);
  s.starts.configure({.max_size = 1, .parallelism = 2}, {.max_size = 1});
  CHECK(s.starts.take(s.waiting, {}).rows == 1);
  CHECK(s.starts.take(s.waiting, {}).calls.empty());
  CHECK_FALSE(s.starts.any_starting());
  s.starts.ended({}, {}, 1, 1, {});

  CHECK(s.start() == 1);
  CHECK(s.waiting.remove_if([](const BatchCall&) { return true; }).size() == 1);
  CHECK(s.starts.take(s.waiting, {}).calls.empty());
  CHECK(s.starts.is_idle());
}

TEST_CASE("a pause starts nothing, and a drain ends it and starts all") {
  Starts s({.max_size = 4, .max_wait = 1s});
  s.add({}, 3);
  s.starts.pause();
  CHECK(s.start(TimePoint(2s)) == 0);
  CHECK(s.starts.next_due(s.waiting, {}) == TimePoint::max());
  CHECK(s.starts.resume());
  CHECK_FALSE(s.starts.resume());
  CHECK(s.start() == 0);
  CHECK(s.starts.next_due(s.waiting, {}) == TimePoint(1s));
  s.starts.pause();
  s.starts.drain();
  CHECK_FALSE(s.starts.is_paused());
  const BatchStarts::Starting starting = s.starts.start(s.waiting, {});
  CHECK(starting.batches == 1);
  CHECK_FALSE(starting.complete);  // another row would go along
  CHECK(s.starts.take(s.waiting, {}).reason == BatchReason::flush);
}

TEST_CASE("a batch that takes no more rows is complete") {
  Starts s({.max_size = 2, .max_wait = 1s});
  s.add({}, 2);
  CHECK(s.starts.start(s.waiting, {}).complete);
}

TEST_CASE("where nothing makes room the oldest lane waits for no more, unless another is due") {
  Starts s({.max_size = 4, .min_size = 4});
  s.add({});
  s.starts.flush_oldest(s.waiting, {});
  CHECK(s.start() == 1);
  CHECK(s.starts.take(s.waiting, {}).reason == BatchReason::full);
}

TEST_CASE("a reducer takes calls while no batch runs, as many as the batch that gathers takes") {
  Starts s({.max_size = 2, .min_size = 2});
  Accumulation accumulation(true);
  accumulation.configure({});
  CHECK(accumulation.next(s.waiting, s.starts) == nullptr);
  for (int i = 0; i < 3; ++i)
    s.add({});
  CHECK(accumulation.needs_task());
  CHECK_FALSE(accumulation.needs_task());
  for (int i = 0; i < 2; ++i) {
    BatchCall* const call = accumulation.next(s.waiting, s.starts);
    REQUIRE(call != nullptr);
    accumulation.begin(*call);
    CHECK(accumulation.current() == call);
    CHECK(call->pinned);
    accumulation.end();
    s.waiting.accumulated(*call);
  }
  CHECK(accumulation.next(s.waiting, s.starts) == nullptr);  // the third is of the next batch
  accumulation.task_ended();
  CHECK(s.start() == 1);
  CHECK(s.starts.take(s.waiting, {}).rows == 2);
  CHECK(accumulation.next(s.waiting, s.starts) == nullptr);  // a batch runs
  s.starts.ended({}, {}, 2, 1, {});
  CHECK(accumulation.next(s.waiting, s.starts) != nullptr);
  s.starts.pause();
  CHECK(accumulation.next(s.waiting, s.starts) == nullptr);
  s.starts.resume();
  accumulation.configure({.order_by_peer = true});
  CHECK(accumulation.next(s.waiting, s.starts) == nullptr);
}

}  // namespace batch_starts_test
}  // namespace batchrpc::detail
