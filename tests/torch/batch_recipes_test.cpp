#include <algorithm>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/torch/batch.hpp"
#include "node/virtual_world.hpp"
#include "torch/tensors.hpp"

// What docs/batching.md shows, as it is there.
namespace batchrpc {
namespace {

using namespace std::chrono_literals;

namespace rpc = batchrpc;

struct Server {
  void begin() { sum.zero_(); }
  void accumulate(const at::Tensor& gradient) { sum += gradient; }
  at::Tensor finish(const rpc::BatchInfo& batch) {
    parameters.sub_(sum, rate / static_cast<double>(batch.rows));
    return parameters.clone();
  }
  at::Tensor parameters;
  double rate;
  at::Tensor sum = at::zeros_like(parameters);
};

TEST_CASE("recipe: a parameter server updates when all live trainers have sent theirs", "[batch]") {
  test::VirtualWorld world;
  const Node node = world.root("server");
  const std::vector<std::string> trainers{"trainer0", "trainer1"};
  const at::Tensor parameters = at::ones({3});

  const rpc::Batcher<at::Tensor(at::Tensor)> update(
      {.all_of = trainers}, rpc::reduce(Server{.parameters = parameters, .rate = 0.5}));
  node.expose("update", update);

  const Node first = world.join("trainer0");
  const Node second = world.join("trainer1");
  std::vector<at::Tensor> sent;
  for (int round = 1; round <= 2; ++round) {
    const auto one = first.call<at::Tensor(at::Tensor)>("server", "update", at::full({3}, 1.F));
    const auto two = second.call<at::Tensor(at::Tensor)>("server", "update", at::full({3}, 3.F));
    sent.push_back(one.get());
    CHECK(at::equal(two.get(), sent.back()));
    CHECK(at::equal(parameters, at::full({3}, static_cast<float>(1 - round))));
  }
  CHECK(at::equal(sent[0], at::zeros({3})));
  CHECK(at::equal(sent[1], at::full({3}, -1.F)));
}

TEST_CASE("recipe: a barrier hands all the same, and does not wait for ever", "[batch]") {
  test::VirtualWorld world;
  const Node node = world.root("root");
  const std::vector<std::string> workers{"worker0", "worker1"};
  using Report = int;
  using Plan = std::string;
  const auto make_plan = [](const std::vector<Report>& reports) {
    return "of " + std::to_string(reports.size());
  };

  const rpc::Batcher<Plan(Report)> next_plan(
      {.max_wait = 10s, .all_of = workers},
      [&](const std::vector<Report>& reports) { return rpc::ForAll(make_plan(reports)); });
  node.expose("next_plan", next_plan);

  const Node first = world.join("worker0");
  const Node second = world.join("worker1");
  const auto call = [](const Node& from) {
    return from.call<Plan(Report)>("root", "next_plan", 1);
  };
  const auto one = call(first);
  const auto two = call(second);
  CHECK(one.get() == "of 2");
  CHECK(two.get() == "of 2");
  CHECK(call(first).get() == "of 1");
}

TEST_CASE("recipe: evaluators go first", "[batch]") {
  test::VirtualWorld world;
  const Node node = world.root("root");
  std::vector<float> order;

  const auto from_evaluator = [](const at::Tensor& /*state*/) {
    const rpc::CallContext* call = rpc::CallContext::current();  // null: a row of this process
    return call != nullptr && call->caller().name.starts_with("evaluator") ? 1 : 0;
  };
  const rpc::Batcher<at::Tensor(at::Tensor)> infer({.max_size = 1},
                                                   [&](at::Tensor states) {
                                                     order.push_back(states[0][0].item<float>());
                                                     return states;
                                                   },
                                                   {.priority = from_evaluator});
  node.expose("infer", infer);

  const Node evaluator = world.join("evaluator0");
  const Node actor = world.join("actor0");
  infer.pause();
  const auto local = infer(at::full({1}, 0.F));
  const auto low = actor.call<at::Tensor(at::Tensor)>("root", "infer", at::full({16 * 1024}, 1.F));
  world.run_for(1ms);
  const auto high =
      evaluator.call<at::Tensor(at::Tensor)>("root", "infer", at::full({16 * 1024}, 2.F));
  world.run_for(1ms);
  infer.resume();
  CHECK(high.get()[0].item<float>() == 2);
  CHECK(low.get()[0].item<float>() == 1);
  CHECK(local.get()[0].item<float>() == 0);
  CHECK(order.front() == 2);
}

struct OnPool : rpc::Executor {
  explicit OnPool(asio::thread_pool& to) : threads(to) {}
  void post(Task task) override { asio::post(threads, std::move(task)); }
  asio::thread_pool& threads;
};

TEST_CASE("recipe: batches run at once on a pool of threads", "[batch]") {
  std::atomic<int> running = 0;

  asio::thread_pool threads(2);
  const rpc::Batcher<at::Tensor(at::Tensor)> infer(
      {.max_size = 1, .parallelism = 2, .executor = std::make_shared<OnPool>(threads)},
      [&](at::Tensor states) {
        ++running;
        while (running < 2)
          std::this_thread::yield();
        return states;
      });
  const auto one = infer(at::ones({1}));
  const auto two = infer(at::ones({1}));
  CHECK(one.get().numel() == 1);
  CHECK(two.get().numel() == 1);
}

TEST_CASE("recipe: who finds no room comes again", "[batch]") {
  const rpc::Batcher<int(int)> infer({.max_size = 1, .max_queue = 1},
                                     [](std::vector<int> rows) { return rows; });
  const auto ask = [&](int state) {
    for (;;) {
      try {
        return infer(state).get();
      } catch (const rpc::Overloaded& full) {
        std::this_thread::sleep_for(std::max<rpc::Duration>(full.retry_after(), 1ms));
      }
    }
  };
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 20; ++i) {
        if (ask(caller) != caller) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers)
    caller.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace batchrpc
