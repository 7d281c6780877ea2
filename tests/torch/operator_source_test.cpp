#include "batchrpc/torch/operator_source.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/csrc/autograd/profiler_legacy.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "batchrpc/trace/operator_source.hpp"

namespace batchrpc::detail {
namespace operator_source_test {

namespace profiler = torch::autograd::profiler;

class Sink final : public OperatorSink {
 public:
  void add(OperatorRecord&& record) noexcept override {
    const std::lock_guard lock(mutex_);
    records_.push_back(std::move(record));
  }
  TimePoint now() const noexcept override {  // each look at it is later than the one before
    const std::lock_guard lock(mutex_);
    return TimePoint(std::chrono::nanoseconds(++time_));
  }
  std::vector<OperatorRecord> records() const {
    const std::lock_guard lock(mutex_);
    return records_;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const OperatorRecord& record : records())
      names.push_back(record.name);
    return names;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::int64_t time_ = 0;
  std::vector<OperatorRecord> records_;
};

const OperatorSource& source() { return *torch_operators(); }

// Sets a sink, and the one of before again.
class Scope {
 public:
  explicit Scope(OperatorSink* sink) : before_(source().exchange_sink(sink)) {}
  ~Scope() { source().exchange_sink(before_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  OperatorSink* before_;
};

using Names = std::vector<std::string>;

TEST_CASE("there is one operator source", "[operator_source]") {
  REQUIRE(torch_operators() != nullptr);
  CHECK(torch_operators() == torch_operators());
}

TEST_CASE("operators of a thread with a sink are recorded as they end", "[operator_source]") {
  const at::Tensor a = at::ones({2, 2});
  Sink sink;
  {
    const Scope scope(&sink);
    (void)at::linear(a, a);
    (void)a.mul(2);
  }
  (void)a.mul(3);
  const auto records = sink.records();
  REQUIRE(records.size() >= 3);
  const auto named = [&](const char* name) {
    const auto at = std::find_if(records.begin(), records.end(),
                                 [&](const OperatorRecord& record) { return record.name == name; });
    REQUIRE(at != records.end());
    return at;
  };
  const auto linear = named("aten::linear");
  CHECK(linear != records.begin());  // what it is made of has ended before
  CHECK(records.back().name == "aten::mul");
  for (auto inner = records.begin(); inner != linear; ++inner) {
    CHECK(inner->begin > linear->begin);
    CHECK(inner->end < linear->end);
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK(records[i].begin < records[i].end);
    CHECK(records[i].thread == static_cast<std::uint64_t>(::gettid()));
    CHECK_FALSE(records[i].shared);
    if (i > 0) CHECK(records[i - 1].end < records[i].end);
  }
}

TEST_CASE("without a sink no callback is left on the thread", "[operator_source]") {
  Sink sink;
  CHECK(source().exchange_sink(&sink) == nullptr);
  CHECK(at::hasThreadLocalCallbacks());
  CHECK(source().exchange_sink(nullptr) == &sink);
  CHECK_FALSE(at::hasThreadLocalCallbacks());
  CHECK(source().exchange_sink(nullptr) == nullptr);
}

TEST_CASE("the callbacks of others stay when ours go", "[operator_source]") {
  Sink sink;
  const auto theirs = at::addThreadLocalCallback(at::RecordFunctionCallback(
      [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return nullptr; }));
  { const Scope scope(&sink); }
  CHECK(at::hasThreadLocalCallbacks());
  at::removeCallback(theirs);
  CHECK_FALSE(at::hasThreadLocalCallbacks());
}

TEST_CASE("sinks are nested, and an operator goes to the one that it began with",
          "[operator_source]") {
  Sink outer;
  Sink inner;
  const at::Tensor a = at::ones({2});
  {
    const Scope scope(&outer);
    at::RecordFunction open(at::RecordScope::FUNCTION);
    open.before("outer operator");
    {
      const Scope nested(&inner);
      (void)a.neg();
      const Scope none(nullptr);
      (void)a.neg();
    }
    open.end();
  }
  CHECK(outer.names() == Names{"outer operator"});
  CHECK(inner.names() == Names{"aten::neg"});
}

TEST_CASE("an operator that is open when its sink goes is reported to nobody",
          "[operator_source]") {
  auto sink = std::make_unique<Sink>();
  Sink next;
  source().exchange_sink(sink.get());
  std::optional<at::RecordFunction> first(std::in_place, at::RecordScope::FUNCTION);
  first->before("open when there is no sink");
  std::optional<at::RecordFunction> second(std::in_place, at::RecordScope::FUNCTION);
  second->before("open when there is another");
  source().exchange_sink(nullptr);
  sink.reset();
  second.reset();
  source().exchange_sink(&next);
  first.reset();
  source().exchange_sink(nullptr);
  CHECK(next.names().empty());
}

TEST_CASE("an operator that begins before there is a sink is not recorded", "[operator_source]") {
  Sink sink;
  std::optional<at::RecordFunction> open(std::in_place, at::RecordScope::FUNCTION);
  open->before("early");
  const Scope scope(&sink);
  open.reset();
  CHECK(sink.names().empty());
}

TEST_CASE("an operator that throws has ended", "[operator_source]") {
  Sink sink;
  const Scope scope(&sink);
  CHECK_THROWS(at::ones({2, 3}).mm(at::ones({2, 3})));
  const Names names = sink.names();
  CHECK(std::count(names.begin(), names.end(), "aten::mm") == 1);
  (void)at::ones({1}).neg();
  CHECK(sink.names().back() == "aten::neg");
}

TEST_CASE("other threads are not recorded, also where they go on with the work of one that is",
          "[operator_source]") {
  Sink sink;
  const at::Tensor a = at::ones({4});
  const Scope scope(&sink);
  std::thread plain([&] { (void)a.neg(); });
  plain.join();
  std::thread carrying([&, state = at::ThreadLocalState()] {
    const at::ThreadLocalStateGuard guard(state);
    (void)a.neg();
  });
  carrying.join();
  CHECK(sink.names().empty());
  std::mutex mutex;
  at::parallel_for(0, 8, 1, [&](std::int64_t, std::int64_t) {
    const std::lock_guard lock(mutex);
    (void)a.abs();
  });
  for (const OperatorRecord& record : sink.records())
    CHECK(record.thread == static_cast<std::uint64_t>(::gettid()));
}

TEST_CASE("a guard that brings callbacks back records nothing twice, nor without a sink",
          "[operator_source]") {
  Sink sink;
  const at::Tensor a = at::ones({4});
  std::optional<at::ThreadLocalState> listening;
  {
    const Scope scope(&sink);
    listening.emplace();
  }
  {
    const at::ThreadLocalStateGuard guard(*listening);
    (void)a.neg();  // a callback, and no sink
    CHECK(sink.names().empty());
    const Scope scope(&sink);
    (void)a.neg();
    CHECK(sink.names() == Names{"aten::neg"});
  }
  CHECK_FALSE(at::hasThreadLocalCallbacks());
  const at::ThreadLocalState silent;
  const Scope scope(&sink);
  {
    const at::ThreadLocalStateGuard guard(silent);
    CHECK(source().exchange_sink(&sink) == &sink);
    (void)a.abs();
  }
  CHECK(sink.names().back() == "aten::abs");
}

// --- the program's own profile

const profiler::ProfilerConfig kLegacy(profiler::ProfilerState::CPU, false, false);
const profiler::ProfilerConfig kKineto(profiler::ProfilerState::KINETO, false, false);

std::vector<profiler::LegacyEvent> ranges(const profiler::thread_event_lists& lists) {
  std::vector<profiler::LegacyEvent> found;
  for (const auto& list : lists) {
    for (const auto& event : list) {
      if (event.kindStr() == "push" || event.kindStr() == "pop") found.push_back(event);
    }
  }
  return found;
}

constexpr const char* kRange = "rpc_async#f(w0 -> w1)";

TEST_CASE("the program watches a thread while it profiles it, and our sinks do not count",
          "[operator_source]") {
  Sink sink;
  const Scope scope(&sink);
  CHECK_FALSE(source().is_watched());
  CHECK(source().begin_range("nobody looks") == nullptr);
  profiler::enableProfilerLegacy(kLegacy);
  CHECK(source().is_watched());
  std::thread([] { CHECK_FALSE(source().is_watched()); }).join();
  (void)profiler::disableProfilerLegacy();
  CHECK_FALSE(source().is_watched());
}

TEST_CASE("a range is in the program's profile, though it ends on another thread",
          "[operator_source]") {
  profiler::enableProfilerLegacy(kLegacy);
  auto range = source().begin_range(kRange);
  REQUIRE(range != nullptr);
  std::thread([&] { range.reset(); }).join();
  auto same_thread = source().begin_range("second");
  same_thread.reset();
  const auto events = ranges(profiler::disableProfilerLegacy());
  REQUIRE(events.size() == 4);
  CHECK(std::string(events[0].name()) == kRange);
  CHECK(events[0].kindStr() == "push");
  CHECK(events[1].kindStr() == "pop");
  CHECK(events[1].handle() == events[0].handle());
  CHECK(events[0].cpuElapsedUs(events[1]) > 0);
  CHECK(std::string(events[2].name()) == "second");
}

TEST_CASE("a range that ends on a thread with a profile of its own is not in that one",
          "[operator_source]") {
  profiler::enableProfilerLegacy(kLegacy);
  auto range = source().begin_range(kRange);
  std::size_t others = 99;
  std::thread([&] {
    profiler::enableProfilerLegacy(kLegacy);
    range.reset();
    others = ranges(profiler::disableProfilerLegacy()).size();
  }).join();
  CHECK(others == 0);
  CHECK(ranges(profiler::disableProfilerLegacy()).size() == 2);
}

TEST_CASE("a range that ends after its profile is in none", "[operator_source]") {
  profiler::enableProfilerLegacy(kLegacy);
  auto range = source().begin_range(kRange);
  CHECK(ranges(profiler::disableProfilerLegacy()).size() == 1);
  profiler::enableProfilerLegacy(kLegacy);
  range.reset();
  CHECK(ranges(profiler::disableProfilerLegacy()).empty());
}

TEST_CASE("a range is in a profile of kineto", "[operator_source]") {
  const std::set<profiler::ActivityType> activities{profiler::ActivityType::CPU};
  profiler::prepareProfiler(kKineto, activities);
  profiler::enableProfiler(kKineto, activities);
  auto range = source().begin_range(kRange);
  auto late = source().begin_range("late");
  REQUIRE(range != nullptr);
  std::thread([&] { range.reset(); }).join();
  const auto result = profiler::disableProfiler();
  std::size_t found = 0;
  for (const auto& event : result->events())
    found += std::string(event.name()) == kRange ? 1U : 0U;
  CHECK(found == 1);
  profiler::prepareProfiler(kKineto, activities);
  profiler::enableProfiler(kKineto, activities);
  late.reset();  // what it was to write into is no more
  const auto second = profiler::disableProfiler();
  for (const auto& event : second->events())
    CHECK(std::string(event.name()) != "late");
}

TEST_CASE("what recording operators costs", "[.][benchmark][operator_source]") {
  class Counting final : public OperatorSink {
   public:
    void add(OperatorRecord&& record) noexcept override { sum += record.name.size(); }
    TimePoint now() const noexcept override { return std::chrono::steady_clock::now(); }
    std::size_t sum = 0;
  };
  Counting sink;
  const at::Tensor a = at::ones({4});
  const at::Tensor b = at::ones({4});
  const auto measure = [&](const char* what, const auto& body) {
    constexpr int kRuns = 200'000;
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kRuns; ++i)
        body();
      const std::chrono::duration<double, std::nano> took =
          std::chrono::steady_clock::now() - begin;
      best = std::min(best, took.count() / kRuns);
    }
    WARN(what << ": " << best << " ns");
  };
  const c10::InferenceMode inference;
  measure("aten::add_, no sink", [&] { a.add_(b); });
  {
    const Scope scope(&sink);
    measure("aten::add_, a sink", [&] { a.add_(b); });
    measure("one sink exchanged for another, and back", [&] { const Scope other(&sink); });
  }
  measure("aten::add_, no sink any more", [&] { a.add_(b); });
  measure("a sink set and taken back", [&] { const Scope scope(&sink); });
  measure("is_watched()", [&] { sink.sum += source().is_watched() ? 1U : 0U; });
}

}  // namespace operator_source_test
}  // namespace batchrpc::detail
