#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/torch/batch.hpp"
#include "node/virtual_world.hpp"
#include "torch/tensors.hpp"

// Batchers whose rows are tensors.

namespace batchrpc {
namespace batch_tensors_test {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using torch_test::message_of;

/// A batch of exactly `size` rows.
BatchOptions batch_of(std::size_t size) { return {.max_size = size, .max_wait = 1h}; }

TEST_CASE("a batcher stacks states and gives each caller its action", "[batch]") {
  int batches = 0;
  const Batcher<std::int64_t(at::Tensor)> select_action(
      batch_of(3), [&](at::Tensor states /* [B, 4] */) {
        ++batches;
        REQUIRE(states.sizes() == at::IntArrayRef({3, 4}));
        return states.argmax(1) /* [B] */;
      });
  std::vector<Future<std::int64_t>> actions;
  for (int i = 0; i < 3; ++i)
    actions.push_back(select_action(at::eye(4)[i]));
  for (int i = 0; i < 3; ++i)
    CHECK(actions[static_cast<std::size_t>(i)].get() == i);
  CHECK(batches == 1);
}

TEST_CASE("handlers take tensors beside vectors and return tensors, tuples, or futures",
          "[batch]") {
  const Batcher<at::Tensor(at::Tensor, int)> scaled(
      batch_of(2), [](const at::Tensor& rows, const std::vector<int>& factors) {
        return rows * at::tensor(factors).unsqueeze(1);
      });
  const auto first = scaled(at::ones({2}), 3);
  const auto second = scaled(at::ones({2}), 4);
  CHECK(at::equal(first.get(), at::ones({2}) * 3));
  CHECK(at::equal(second.get(), at::ones({2}) * 4));

  const Batcher<std::tuple<at::Tensor, float>(at::Tensor)> both(
      batch_of(1), [](const at::Tensor& rows) { return std::tuple(rows + 1, rows.sum(1)); });
  const auto [row, sum] = both(at::ones({2})).get();
  CHECK(at::equal(row, at::ones({2}) + 1));
  CHECK(sum == 2);

  const Batcher<float(at::Tensor)> later(
      batch_of(1), [](const at::Tensor& rows) { return make_ready_future(rows.sum(1)); });
  CHECK(later(at::ones({5})).get() == 5);
}

TEST_CASE("rows of different shapes, types and numbers of rows go into different batches",
          "[batch]") {
  std::vector<std::string> batches;
  const Batcher<float(at::Tensor)> sums(batch_of(2), [&](const at::Tensor& rows) {
    batches.push_back(detail::describe_tensor(rows));
    return rows.sum(1).to(at::kFloat);
  });
  const auto a = sums(at::ones({3}));
  const auto other_shape = sums(at::ones({4}));
  const auto other_type = sums(at::ones({3}, at::kDouble));
  const auto b = sums(at::ones({3}) * 2);
  const auto other_type_too = sums.many()(at::ones({1, 3}, at::kDouble));
  const auto other_shape_too = sums(at::ones({4}) * 3);
  CHECK(a.get() == 3);
  CHECK(b.get() == 6);
  CHECK(other_shape.get() == 4);
  CHECK(other_shape_too.get() == 12);
  CHECK(other_type.get() == 3);
  CHECK(other_type_too.get() == std::vector<float>{3});
  std::sort(batches.begin(), batches.end());
  CHECK(batches == std::vector<std::string>{"float32 [2, 3]", "float32 [2, 4]", "float64 [2, 3]"});
}

TEST_CASE("a row of another shape fails alone, and names what was expected", "[batch]") {
  const Batcher<float(at::Tensor)> sums(batch_of(4),
                                        [](const at::Tensor& rows) { return rows.sum(1); },
                                        {.key = [](const at::Tensor&) { return BatchKey("one"); }});
  const auto a = sums(at::ones({3}));
  const auto wrong_shape = sums(at::ones({4}));
  const auto wrong_type = sums(at::ones({3}, at::kLong));
  const auto b = sums(at::ones({3}) * 2);
  CHECK(a.get() == 3);
  CHECK(b.get() == 6);
  CHECK_THAT(message_of<InvalidArgument>([&] { wrong_shape.get(); }),
             Contains("float32 [4]") && Contains("the others are float32 [3]"));
  CHECK_THAT(message_of<InvalidArgument>([&] { wrong_type.get(); }),
             Contains("int64 [3]") && Contains("the others are float32 [3]"));
}

TEST_CASE("a batch of misfits alone does not run the handler, and the next batch works",
          "[batch]") {
  int runs = 0;
  const Batcher<float(at::Tensor)> sums(batch_of(1), [&](const at::Tensor& rows) {
    ++runs;
    return rows.sum(1);
  });
  CHECK_THROWS_AS(sums(at::Tensor()).get(), InvalidArgument);
  CHECK(runs == 0);
  CHECK(sums(at::ones({2})).get() == 2);
  CHECK(runs == 1);
}

TEST_CASE("a handler that returns the wrong number or kind of results fails its rows", "[batch]") {
  const Batcher<float(at::Tensor)> short_of_one(
      batch_of(2), [](const at::Tensor& rows) { return rows.sum(1).slice(0, 1); });
  const auto a = short_of_one(at::ones({2}));
  const auto b = short_of_one(at::ones({2}));
  CHECK_THAT(message_of<InvalidArgument>([&] { a.get(); }), Contains("1 results for 2 rows"));
  CHECK_THROWS_AS(b.get(), InvalidArgument);

  const Batcher<int(at::Tensor)> of_floats(batch_of(1),
                                           [](const at::Tensor& rows) { return rows.sum(1); });
  CHECK_THROWS_AS(of_floats(at::ones({2})).get(), InvalidArgument);

  const Batcher<float(at::Tensor)> torch_error(batch_of(1),
                                               [](const at::Tensor& rows) { return rows.sum(7); });
  CHECK_THROWS_AS(torch_error(at::ones({2})).get(), c10::Error);
}

TEST_CASE("observers send rows to a batcher on another node, and get theirs back", "[batch]") {
  const test::VirtualWorld world;
  const Node agent = world.root("agent");
  const Node a = world.join("a");
  const Node b = world.join("b");
  std::vector<std::int64_t> sizes;
  const Batcher<std::int64_t(at::Tensor)> select_action(
      {.max_size = 64, .max_wait = 500us, .max_queue = 1024},
      [&](at::Tensor states /* [B, 4] */) {
        sizes.push_back(states.size(0));
        return states.argmax(1) /* [B] */;
      },
      {.check = [](const at::Tensor& state) { require_row(state, at::kFloat, {4}); }});
  agent.expose("select_action", select_action);
  const auto call = [](const Node& node, const at::Tensor& row) {
    return node.call<std::int64_t(at::Tensor)>("agent", "select_action", row);
  };
  const at::Tensor rows = at::eye(4);
  const auto one = call(a, rows[1]);
  const auto three = call(b, rows[3]);
  const auto wrong = call(b, at::ones({5}));
  const auto two = call(a, rows[2]);
  CHECK(one.get() == 1);
  CHECK(two.get() == 2);
  CHECK(three.get() == 3);
  CHECK_THAT(message_of<InvalidArgument>([&] { wrong.get(); }),
             Contains("float32 [5]") && Contains("must be float32 [4]"));
  CHECK(sizes == std::vector<std::int64_t>{3});
}

TEST_CASE("rows keep the order that was asked for, wherever they were received", "[batch]") {
  test::VirtualWorld world;
  const Node agent = world.root("agent");
  const Node first = world.join("first");
  const Node second = world.join("second");
  std::vector<at::Tensor> batches;
  BatchOptions options{.max_size = 2, .min_size = 2};
  BatchRules<at::Tensor> rules;
  SECTION("by peer") { options.order_by_peer = true; }
  SECTION("by priority") {
    rules.priority = [](const at::Tensor& row) { return row[0].item<float>() == 1 ? 1 : 0; };
  }
  const Batcher<at::Tensor(at::Tensor)> batcher(
      options,
      [&](const at::Tensor& rows) {
        batches.push_back(rows.clone());
        return rows;
      },
      rules);
  agent.expose("f", batcher);
  constexpr std::int64_t kLarge = 16 * 1024;
  for (int round = 0; round < 3; ++round) {
    const auto late = second.call<at::Tensor(at::Tensor)>("agent", "f", at::full({kLarge}, 2.F));
    world.run_for(1ms);
    const auto early = first.call<at::Tensor(at::Tensor)>("agent", "f", at::full({kLarge}, 1.F));
    CHECK(late.get()[0].item<float>() == 2);
    CHECK(early.get()[0].item<float>() == 1);
  }
  REQUIRE(batches.size() == 3);
  for (const at::Tensor& batch : batches) {
    CHECK(batch[0][0].item<float>() == 1);
    CHECK(batch[1][0].item<float>() == 2);
  }
}

TEST_CASE("rows keep their order where the first lies first, but the others do not follow it",
          "[batch]") {
  test::VirtualWorld world;
  const Node agent = world.root("agent");
  const std::array<Node, 3> nodes{world.join("1"), world.join("2"), world.join("3")};
  std::vector<at::Tensor> batches;
  const Batcher<at::Tensor(at::Tensor)> batcher(
      {.max_size = 3, .min_size = 3, .order_by_peer = true}, [&](const at::Tensor& rows) {
        batches.push_back(rows.clone());
        return rows;
      });
  agent.expose("f", batcher);
  constexpr std::int64_t kLarge = 16 * 1024;
  for (int round = 0; round < 3; ++round) {
    std::vector<Future<at::Tensor>> answers;
    for (const std::size_t node : {0U, 2U, 1U}) {
      const at::Tensor row = at::full({kLarge}, static_cast<float>(node));
      answers.push_back(nodes[node].call<at::Tensor(at::Tensor)>("agent", "f", row));
      world.run_for(1ms);
    }
    CHECK(answers[0].get()[0].item<float>() == 0);
    CHECK(answers[1].get()[0].item<float>() == 2);
    CHECK(answers[2].get()[0].item<float>() == 1);
  }
  REQUIRE(batches.size() == 3);
  for (const at::Tensor& batch : batches) {
    for (std::int64_t row = 0; row < 3; ++row)
      CHECK(batch[row][0].item<float>() == static_cast<float>(row));
  }
}

TEST_CASE("a device that is not there is refused by name", "[batch]") {
  const auto make = [](const char* device) {
    const Batcher<float(at::Tensor)> batcher({.device = device},
                                             [](const at::Tensor& rows) { return rows.sum(1); });
    return batcher(at::ones({3})).get();
  };
  CHECK(make("") == 3);
  CHECK(make("cpu") == 3);
  CHECK_THAT(message_of<InvalidArgument>([&] { make("toaster"); }),
             Contains("BatchOptions::device") && Contains("toaster"));
  const auto of_numbers = [] {
    const Batcher<int(int)> batcher({.device = "cpu"}, [](std::vector<int> xs) { return xs; });
  };
  CHECK_THAT(message_of<InvalidArgument>(of_numbers), Contains("BatchOptions::device"));
  if (!at::hasCUDA()) {
    CHECK_THAT(message_of<InvalidArgument>([&] { make("cuda:0"); }), Contains("no such device"));
  }
}

TEST_CASE("a batch is on the device that its handler wants, by way of pinned memory", "[batch]") {
  if (!at::hasCUDA()) {
    WARN("left out: there is no CUDA");
    return;
  }
  test::VirtualWorld world;
  const Node agent = world.root("agent");
  const Batcher<at::Tensor(at::Tensor)> batcher({.max_size = 2, .min_size = 2, .device = "cuda:0"},
                                                [](const at::Tensor& rows) {
                                                  CHECK(rows.is_cuda());
                                                  return rows * 2;
                                                });
  agent.expose("f", batcher);
  const Node peer = world.join("peer");
  for (const std::int64_t size : {4, 100'000}) {
    const at::Tensor row = at::rand({size});
    const auto first = peer.call<at::Tensor(at::Tensor)>("agent", "f", row);
    const auto second = peer.call<at::Tensor(at::Tensor)>("agent", "f", row + 1);
    CHECK(at::equal(first.get(), row * 2));
    CHECK(at::equal(second.get(), (row + 1) * 2));
  }
}

TEST_CASE("a coroutine's stacked rows live until its batch is done", "[batch]") {
  Promise<void> open;
  const auto gate = std::make_shared<Future<void>>(open.get_future());
  const Batcher<int(at::Tensor)> sums(batch_of(2),
                                      [gate](const at::Tensor& rows) -> Future<at::Tensor> {
                                        co_await *gate;
                                        co_return rows.sum(1).to(at::kLong);
                                      });
  const auto two = sums(at::ones({2}));
  const auto six = sums(3 * at::ones({2}));
  CHECK_FALSE(two.wait_for(10ms));
  open.set_value();
  CHECK(two.get() == 2);
  CHECK(six.get() == 6);
}

}  // namespace batch_tensors_test
}  // namespace batchrpc
