#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/node_core.hpp"
#include "node/real_nodes.hpp"
#include "node/runners.hpp"

// Functions that share an AsyncMutex, ExposeOptions::exclusive, on nodes with threads.

namespace exclusive_threads {
/// What only one call at a time may use.
class Model {
 public:
  int train(int step) {
    crowded = crowded || busy.exchange(true);
    std::this_thread::yield();
    steps += step;  // not atomic: the thread sanitizer would see two at once
    busy = false;
    return steps;
  }
  batchrpc::Future<int> train_later(batchrpc::Future<void> gate, int step) {
    crowded = crowded || busy.exchange(true);
    co_await std::move(gate);
    steps += step;
    busy = false;
    co_return steps;
  }

  std::atomic<bool> busy{false};
  std::atomic<bool> crowded{false};
  int steps = 0;
};

Model model_of_program;
int train(int step) { return model_of_program.train(step); }
}  // namespace exclusive_threads

namespace batchrpc {
namespace exclusive_threads_test {

using namespace std::chrono_literals;
using exclusive_threads::Model;
using test::outcome;
using test::RealPair;

std::shared_ptr<AsyncMutex> new_mutex() { return std::make_shared<AsyncMutex>(); }

TEST_CASE("of all that share a lock, on workers and where they are read, never two run at once",
          "[threads]") {
  constexpr int kCalls = 300;
  RealPair pair(4);
  const auto mutex = new_mutex();
  const auto model = std::make_shared<Model>();
  exclusive_threads::model_of_program.steps = 0;
  std::atomic<int> later{0};
  pair.b.expose<&Model::train>(model, {.exclusive = mutex});
  pair.b.expose("train", [&model](int step) { return model->train(step); },
                {.short_handler = true, .exclusive = mutex});
  pair.b.expose("train later",
                [&](int step) {
                  Promise<void> gate;
                  auto opened = gate.get_future();
                  pair.b.workers()->post([&later, gate = std::move(gate)]() mutable {
                    ++later;
                    gate.set_value();
                  });
                  return model->train_later(std::move(opened), step);
                },
                {.exclusive = mutex});
  pair.b.expose<&exclusive_threads::train>({.exclusive = mutex});
  std::atomic<int> failed{0};
  std::vector<std::thread> callers;
  for (const Node* from : {&pair.a, &pair.b, &pair.a}) {
    callers.emplace_back([&, from] {
      std::vector<Future<int>> calls;
      for (int i = 0; i < kCalls; ++i) {
        calls.push_back(from->call<&Model::train>("b", 1));
        calls.push_back(from->call<int(int)>("b", "train", 1));
        calls.push_back(from->call<int(int)>("b", "train later", 1));
        calls.push_back(from->call<&exclusive_threads::train>("b", 1));
      }
      for (auto& call : calls)
        failed += outcome(std::move(call)) ? 0 : 1;
    });
  }
  for (auto& caller : callers)
    caller.join();
  CHECK(failed == 0);
  CHECK_FALSE(model->crowded);
  CHECK_FALSE(exclusive_threads::model_of_program.crowded);
  const AsyncMutex::Guard guard = mutex->lock().get();
  CHECK(model->steps == 3 * 3 * kCalls);
  CHECK(exclusive_threads::model_of_program.steps == 3 * kCalls);
  CHECK(later == 3 * kCalls);
}

TEST_CASE("four workers run the calls that share a lock in their order, and others meanwhile",
          "[threads]") {
  RealPair pair(4);
  const auto mutex = new_mutex();
  std::vector<int> order;
  pair.b.expose("note", [&order](int i) { order.push_back(i); }, {.exclusive = mutex});
  pair.b.expose("free", [] { return 1; });
  std::vector<Future<void>> calls;
  {
    const AsyncMutex::Guard guard = mutex->lock().get();
    for (int i = 0; i < 500; ++i)
      calls.push_back(pair.a.call<void(int)>("b", "note", i));
    for (int i = 0; i < 20; ++i)  // more than there are workers: none of them waits
      CHECK(pair.a.call<int()>("b", "free").get() == 1);
  }
  for (auto& call : calls)
    call.get();
  const AsyncMutex::Guard guard = mutex->lock().get();
  CHECK(order.size() == 500);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("a short handler runs where messages are read, also when it had to wait for the lock",
          "[threads]") {
  RealPair pair(1);
  const auto mutex = new_mutex();
  std::atomic<bool> on_reading_thread{false};
  pair.b.expose("soon",
                [&] { on_reading_thread = detail::NodeAccess::core(pair.b)->loop()->is_driving(); },
                {.short_handler = true, .exclusive = mutex});
  std::latch begun(1);
  std::latch release(1);
  pair.b.expose("work",
                [&] {
                  begun.count_down();
                  release.wait();
                },
                {.exclusive = mutex});
  auto work = pair.a.call<void()>("b", "work");
  begun.wait();
  auto soon = pair.a.call<void()>("b", "soon");
  CHECK_FALSE(soon.wait_for(20ms));
  release.count_down();
  soon.get();
  work.get();
  CHECK(on_reading_thread);
}

TEST_CASE("nodes with threads end while calls wait for a lock that nobody gives back",
          "[threads]") {
  for (int round = 0; round < 10; ++round) {
    const auto mutex = new_mutex();
    const AsyncMutex::Guard guard = mutex->lock().get();
    std::atomic<int> ran{0};
    RealPair pair(2);
    pair.b.expose("run", [&ran] { ++ran; }, {.short_handler = round % 2 == 0, .exclusive = mutex});
    std::vector<Future<void>> calls;
    for (int i = 0; i < 20; ++i)
      calls.push_back(pair.a.call<void()>("b", "run"));
    calls.front().wait_for(5ms);
    pair.b.shutdown(10ms);
    for (auto& call : calls)
      CHECK_FALSE(outcome(std::move(call)));
    CHECK(ran == 0);
  }
}

TEST_CASE("nodes with threads end while calls that share a lock run and wait", "[threads]") {
  for (int round = 0; round < 10; ++round) {
    const auto mutex = new_mutex();
    Model model;
    RealPair pair(3);
    pair.b.expose("work", [&model] { model.train(1); }, {.exclusive = mutex});
    pair.b.expose("soon", [&model] { model.train(1); },
                  {.short_handler = true, .exclusive = mutex});
    std::vector<Future<void>> calls;
    for (int i = 0; i < 200; ++i)
      calls.push_back(pair.a.call<void()>("b", i % 2 == 0 ? "work" : "soon"));
    calls.front().wait_for(1ms);
    pair.b.shutdown(round % 2 == 0 ? 0s : 1s);
    for (auto& call : calls)
      static_cast<void>(outcome(std::move(call)));
    CHECK_FALSE(model.crowded);
    CHECK(mutex->lock().wait_for(10s));
  }
}

TEST_CASE("a lock is shared by nodes of one process, one of them on a program's context",
          "[threads]") {
  test::Runners runners(3);
  const auto mutex = new_mutex();
  Model model;
  {
    const Node a = test::node_on(runners, test::real_root("a"));
    const Node b(test::real_joining(a, "b", 2));
    for (const Node* node : {&a, &b}) {
      node->expose("work", [&model](int step) { return model.train(step); }, {.exclusive = mutex});
      node->expose("soon", [&model](int step) { return model.train(step); },
                   {.short_handler = true, .exclusive = mutex});
    }
    std::vector<Future<int>> calls;
    for (int i = 0; i < 400; ++i)
      calls.push_back(b.call<int(int)>(i % 2 == 0 ? "a" : "b", i % 4 < 2 ? "work" : "soon", 1));
    for (auto& call : calls)
      call.get();
  }
  CHECK_FALSE(model.crowded);
  CHECK(model.steps == 400);
}

}  // namespace exclusive_threads_test
}  // namespace batchrpc
