#include "batchrpc/call/call_state.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "batchrpc/call/exposed.hpp"
#include "largest_allocation.hpp"
#include "long_tests.hpp"

// What becomes of a call that is being answered, whoever is faster.

namespace batchrpc::detail {
namespace call_state_test {

class Function final : public ExposedFunction {
 public:
  Function() : ExposedFunction("f", "void()", {}) { ++alive; }
  ~Function() override { --alive; }
  void run(RunningCall& /*call*/) noexcept override {}
  [[nodiscard]] std::string schema() const override { return {}; }

  static inline std::atomic<int> alive{0};
};

class CountingHook final : public CancelHook {
 public:
  explicit CountingHook(std::atomic<int>& times) : times_(times) {}
  ~CountingHook() override { detach(); }

 private:
  Task task() noexcept override {
    return [&times = times_] { ++times; };
  }
  std::atomic<int>& times_;
};

Ref<CallState> make_call(bool started, std::shared_ptr<Function> function) {
  return Ref<CallState>(new CallState(1, CallArguments(), started, std::move(function)));
}

TEST_CASE("a call is cancelled without memory, and its hooks learn of it") {
  const auto call = make_call(false, nullptr);
  std::atomic<int> notified{0};
  CountingHook first(notified);
  CountingHook detached(notified);
  CountingHook last(notified);
  for (CountingHook* const hook : {&first, &detached, &last})
    REQUIRE(hook->attach(call));
  detached.detach();
  test::fail_allocation(1);
  call->cancel();
  CHECK_FALSE(test::allocation_failed());  // none was asked for
  CHECK(notified == 2);
}

TEST_CASE("a call that is cancelled before it starts never does, and gives its arguments back") {
  const auto function = std::make_shared<Function>();
  const auto call = make_call(false, function);
  std::atomic<int> notified{0};
  CountingHook hook(notified);
  REQUIRE(hook.attach(call));
  const auto when = call->when_cancelled();
  CHECK(call->function() == function);
  CHECK(call->cancel_if_waiting());
  CHECK(notified == 1);
  CHECK(when.ready());
  CHECK_FALSE(call->start());
  CHECK(call->cancelled());
  CHECK_FALSE(call->cancel_if_waiting());
  call->cancel();
  CHECK(notified == 1);
  CHECK(call->function() == nullptr);
  call->end();
  CHECK(call->cancelled());
}

TEST_CASE("a call that has started is cancelled by those only who stop what runs") {
  const auto function = std::make_shared<Function>();
  const auto call = make_call(false, function);
  REQUIRE(call->start());
  CHECK_FALSE(call->cancel_if_waiting());
  CHECK(call->under_way());
  call->cancel();
  CHECK(call->cancelled());
  std::atomic<int> notified{0};
  CHECK_FALSE(CountingHook(notified).attach(call));
}

TEST_CASE("a call that is answered cannot be cancelled, and lets its function go") {
  auto function = std::make_shared<Function>();
  const std::weak_ptr<Function> weak = function;
  const auto call = make_call(true, std::move(function));
  std::atomic<int> notified{0};
  CountingHook hook(notified);
  REQUIRE(hook.attach(call));
  const auto when = call->when_cancelled();
  call->end();
  call->let_go();
  CHECK(weak.expired());
  call->cancel();
  CHECK_FALSE(call->cancelled());
  CHECK_FALSE(call->under_way());
  CHECK(notified == 0);
  REQUIRE(when.ready());
  CHECK_FALSE(call->stop_token().stop_requested());
  CHECK(call->function() == nullptr);
}

TEST_CASE("threads start, answer, cancel, watch and name one call, and each happens as it should",
          "[threads]") {
  const int rounds = test::times(5000, 50'000);
  int ran = 0;
  int stopped = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto function = std::make_shared<Function>();
    const bool starts_late = round % 2 == 0;
    const auto call = make_call(!starts_late, function);
    std::atomic<int> notified{0};
    std::atomic<int> seen{0};
    bool attached = false;
    bool started = !starts_late;
    std::latch begin(4);
    CountingHook hook(notified);
    Future<void> when;
    {
      const std::jthread answers([&] {
        begin.arrive_and_wait();
        if (starts_late) started = call->start();
        call->end();
        call->let_go();
      });
      const std::jthread cancels([&] {
        begin.arrive_and_wait();
        if (round % 3 == 0) {
          static_cast<void>(call->cancel_if_waiting());
        } else {
          call->cancel();
        }
      });
      const std::jthread names([&] {
        begin.arrive_and_wait();
        if (const auto known = call->function()) seen += static_cast<int>(known->name.size());
      });
      begin.arrive_and_wait();
      attached = hook.attach(call);
      when = call->when_cancelled();
    }
    // It ran, or was given up before; who watched it was told of a cancellation, or of the end.
    const bool cancelled = call->cancelled();
    REQUIRE((started || cancelled));
    REQUIRE(notified == (attached && cancelled ? 1 : 0));
    REQUIRE(when.ready());
    REQUIRE(static_cast<bool>(std::move(when).result()) == cancelled);
    REQUIRE(seen <= 1);
    REQUIRE(function.use_count() == 1);
    ran += started && !cancelled ? 1 : 0;
    stopped += cancelled ? 1 : 0;
  }
  CHECK(ran > 0);
  CHECK(stopped > 0);
  CHECK(Function::alive == 0);
}

}  // namespace call_state_test
}  // namespace batchrpc::detail
