#include <algorithm>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/torch/batch.hpp"
#include "node/virtual_world.hpp"
#include "torch/tensors.hpp"

// The recipes of docs/batching.md, each in a world that uses it. In no namespace of the library's:
// as a user has them.
namespace batch_recipes_test {

using namespace std::chrono_literals;

namespace rpc = batchrpc;
using rpc::Node;
using rpc::test::VirtualWorld;

struct Policy {
  [[nodiscard]] at::Tensor sample(const at::Tensor& states) const { return states.argmax(1); }
};

TEST_CASE("recipe: an inference server", "[batch]") {
  const VirtualWorld world;
  const Node node = world.root("agent");
  const auto policy = std::make_shared<Policy>();

  const rpc::Batcher<std::int64_t(at::Tensor)> select_action(
      {.max_size = 64, .short_handler = true}, &Policy::sample, policy);
  node.expose("select_action", select_action);

  const Node observer = world.join("observer");
  CHECK(observer.call<std::int64_t(at::Tensor)>("agent", "select_action", at::eye(4)[2]).get() ==
        2);
}

constexpr std::int64_t kSize = 8 * 1024;

struct Server {
  void begin() { sum.zero_(); }
  void accumulate(const at::Tensor& gradient) { sum += gradient; }
  at::Tensor finish(const rpc::BatchInfo& batch) {
    const at::NoGradGuard no_grad;
    parameters.sub_(sum, rate / static_cast<double>(batch.rows));
    return parameters.clone();
  }
  at::Tensor parameters;
  double rate;
  at::Tensor sum = at::zeros_like(parameters);
};

TEST_CASE("recipe: a parameter server updates when all live trainers have sent theirs", "[batch]") {
  VirtualWorld world;
  const Node node = world.root("server");
  const std::vector<std::string> trainers{"trainer0", "trainer1"};
  const at::Tensor parameters = at::ones({kSize}).set_requires_grad(true);

  const rpc::Batcher<at::Tensor(at::Tensor)> update(
      {.all_of = trainers}, rpc::reduce(Server{.parameters = parameters, .rate = 0.5}));
  node.expose("update", update);

  const Node first = world.join("trainer0");
  const Node second = world.join("trainer1");
  std::vector<at::Tensor> sent;
  const auto call = [](const Node& from, float gradient) {
    return from.call<at::Tensor(at::Tensor)>("server", "update", at::full({kSize}, gradient));
  };
  for (int round = 1; round <= 2; ++round) {
    const auto local = update(at::full({kSize}, 1.F));
    const auto another = update(at::full({kSize}, 3.F));
    const auto one = call(first, 1);
    const auto two = call(second, 3);
    CHECK(at::equal(one.get(), local.get()));
    CHECK(at::equal(two.get(), local.get()));
    CHECK(at::equal(another.get(), local.get()));
    CHECK(at::equal(parameters.detach(), at::full({kSize}, static_cast<float>(1 - round))));
    sent.push_back(local.get());
  }
  CHECK(at::equal(sent[0], at::zeros({kSize})));  // whatever the next update changes
  CHECK(at::equal(sent[1], at::full({kSize}, -1.F)));
}

TEST_CASE("recipe: a barrier hands all the same, and does not wait for ever", "[batch]") {
  VirtualWorld world;
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

TEST_CASE("recipe: rows are checked, kept apart by a key, and ordered by their callers",
          "[batch]") {
  VirtualWorld world;
  const Node node = world.root("root");
  std::vector<float> order;
  const auto handler = [&](at::Tensor states, const std::vector<int>& /*models*/) {
    order.push_back(states[0][0].item<float>());
    return states;
  };

  const rpc::Batcher<at::Tensor(at::Tensor, int)> infer(
      {.max_size = 64}, handler,
      {.check = [](const at::Tensor& state, int) { rpc::require_row(state, at::kFloat, {4}); },
       .key = [](const at::Tensor&, int model) { return model; },
       .priority =
           [](const at::Tensor&, int) {
             const rpc::CallContext* call = rpc::CallContext::current();
             return call != nullptr && call->caller().name.starts_with("evaluator") ? 1 : 0;
           }});
  node.expose("infer", infer);

  const Node evaluator = world.join("evaluator0");
  const Node actor = world.join("actor0");
  const auto call = [](const Node& from, const at::Tensor& state, int model) {
    return from.call<at::Tensor(at::Tensor, int)>("root", "infer", state, model);
  };
  infer.pause();
  const auto local = infer(at::full({4}, 0.F), 0);
  const auto low = call(actor, at::full({4}, 1.F), 1);
  const auto wrong = call(actor, at::full({5}, 1.F), 1);
  const auto high = call(evaluator, at::full({4}, 2.F), 2);
  world.run_for(1ms);
  infer.resume();
  CHECK(high.get()[0].item<float>() == 2);
  CHECK(low.get()[0].item<float>() == 1);
  CHECK(local.get()[0].item<float>() == 0);
  CHECK_THROWS_AS(wrong.get(), rpc::InvalidArgument);
  CHECK(order == std::vector<float>{2, 0, 1});
}

struct OnPool : rpc::Executor {
  explicit OnPool(asio::thread_pool& to) : threads(to) {}
  void post(rpc::Task task) override { asio::post(threads, std::move(task)); }
  asio::thread_pool& threads;
};

struct Model {
  at::Tensor forward(const at::Tensor& states) {
    ++running;
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (running < 2 && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    if (running < 2) throw std::runtime_error("no other batch runs");
    return states;
  }
  std::atomic<int> running = 0;
};

TEST_CASE("recipe: batches run at once on a pool of threads", "[batch]") {
  const auto model = std::make_shared<Model>();

  asio::thread_pool threads(2);
  const rpc::Batcher<at::Tensor(at::Tensor)> infer(
      {.max_size = 1, .parallelism = 2, .executor = std::make_shared<OnPool>(threads)},
      &Model::forward, model);

  const auto one = infer(at::ones({1}));
  const auto two = infer(at::ones({1}));
  CHECK(one.get().numel() == 1);
  CHECK(two.get().numel() == 1);
}

TEST_CASE("recipe: who finds no room comes again", "[batch]") {
  const rpc::Batcher<at::Tensor(at::Tensor)> infer({.max_size = 1, .max_queue = 1},
                                                   [](const at::Tensor& states) { return states; });
  const auto ask = [&](const at::Tensor& state) {
    for (;;) {
      try {
        return infer(state).get();
      } catch (const rpc::Overloaded& full) {
        std::this_thread::sleep_for(std::max<rpc::Duration>(full.retry_after(), 1ms));
      }
    }
  };
  infer.pause();
  const auto first = infer(at::full({1}, 1.F));
  std::thread resumes([&] {
    while (infer.statistics().rejected == 0)
      std::this_thread::yield();
    infer.resume();
  });
  CHECK(ask(at::full({1}, 2.F)).item<float>() == 2);
  CHECK(first.get().item<float>() == 1);
  resumes.join();
}

TEST_CASE("recipe: threads of one process meet", "[batch]") {
  constexpr std::size_t n = 4;
  const rpc::Batcher<int(int)> sum({.max_size = n, .min_size = n}, [](const std::vector<int>& xs) {
    return rpc::ForAll(std::accumulate(xs.begin(), xs.end(), 0));
  });
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (std::size_t i = 0; i < n; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round)
        right += sum(round).get() == static_cast<int>(n) * round ? 1 : 0;
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(right == n * 20);
}

}  // namespace batch_recipes_test
