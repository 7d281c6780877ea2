#include "batchrpc/torch/batch.hpp"

#include <algorithm>
#include <chrono>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"
#include "torch/tensors.hpp"

namespace batchrpc {
namespace batch_test {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using torch_test::identical;
using torch_test::message_of;

/// As a handler gets rows: one by one, followed by padding.
at::Tensor stack(const std::vector<at::Tensor>& rows, std::size_t padding = 0) {
  const std::string device;
  detail::BatchOutcome outcome;
  BatchTraits<at::Tensor>::Builder builder(rows.size() + padding, {device, outcome});
  for (at::Tensor row : rows)
    builder.add(std::move(row));
  return builder.finish(padding);
}

/// What each caller gets of results.
template <class R, class Results>
std::vector<R> split(Results results) {
  BatchSplit<R, Results> split(std::move(results));
  std::vector<R> rows;
  for (std::size_t i = 0; i < split.size(); ++i)
    rows.push_back(split.row(i));
  return rows;
}

TEST_CASE("rows [d…] are stacked to [B, d…]", "[batch]") {
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{}, {4}, {0}, {2, 3}}) {
    std::vector<at::Tensor> rows;
    for (int i = 0; i < 3; ++i)
      rows.push_back(at::rand(sizes));
    const at::Tensor stacked = stack(rows);
    REQUIRE(stacked.dim() == static_cast<std::int64_t>(sizes.size()) + 1);
    REQUIRE(stacked.size(0) == 3);
    for (std::size_t i = 0; i < 3; ++i)
      REQUIRE(identical(stacked[static_cast<std::int64_t>(i)], rows[i]));
  }
  CHECK_THROWS_AS(stack({}), InvalidArgument);
  CHECK_THROWS_AS(stack({at::rand({2}), at::rand({3})}), InvalidArgument);
  CHECK_THROWS_AS(stack({at::rand({2}), at::rand({2}, at::kDouble)}), InvalidArgument);
  CHECK_THROWS_AS(stack({at::Tensor()}), InvalidArgument);
}

TEST_CASE("rows that are not dense are stacked like others", "[batch]") {
  const at::Tensor strided = at::rand({4, 3}).t();
  const at::Tensor expanded = at::rand({1, 4}).expand({3, 4});
  const at::Tensor stacked = stack({strided, expanded});
  CHECK(at::equal(stacked[0], strided));
  CHECK(at::equal(stacked[1], expanded));
}

TEST_CASE("a batch is padded with copies of its last row", "[batch]") {
  const at::Tensor a = at::rand({3});
  const at::Tensor b = at::rand({3});
  const at::Tensor padded = stack({a, b}, 2);
  CHECK(identical(padded, at::stack({a, b, b, b})));
  const at::Tensor leaf = at::rand({3}).set_requires_grad(true);
  const at::Tensor on_graph = stack({leaf * 2, leaf}, 1);
  CHECK(at::equal(on_graph, at::stack({leaf * 2, leaf, leaf})));
  on_graph.narrow(0, 0, 2).sum().backward();
  CHECK(at::equal(leaf.grad(), at::full({3}, 3)));
}

TEST_CASE("of rows of one key those unlike most others fail alone", "[batch]") {
  const at::Tensor good = at::rand({4});
  const at::Tensor other_shape = at::rand({5});
  const at::Tensor other_type = at::rand({4}, at::kDouble);
  const auto messages_of = [](const std::vector<at::Tensor>& rows) {
    test::VirtualWorld world;
    const Node node = world.root();
    Batcher<at::Tensor(at::Tensor)> batcher(
        {}, [](at::Tensor batch) { return batch; },
        {.key = [](const at::Tensor&) { return BatchKey("all"); }});
    detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(node));
    std::vector<Future<at::Tensor>> futures;
    for (const at::Tensor& row : rows)
      futures.push_back(batcher(row));
    std::vector<std::string> messages;
    for (auto& future : futures) {
      const auto result = test::outcome(std::move(future));
      messages.push_back(result ? "" : result.message());
    }
    return messages;
  };
  CHECK(messages_of({good, good}) == std::vector<std::string>(2));
  CHECK(messages_of({good}) == std::vector<std::string>(1));
  {
    const auto messages = messages_of({other_shape, good, good, other_type, at::Tensor()});
    REQUIRE(messages.size() == 5);
    CHECK_THAT(messages[0], Contains("float32 [5]") && Contains("the others are float32 [4]"));
    CHECK(messages[1].empty());
    CHECK(messages[2].empty());
    CHECK_THAT(messages[3], Contains("float64 [4]") && Contains("the others are float32 [4]"));
    CHECK_THAT(messages[4], Contains("undefined"));
  }
  {  // as many of one as of the other: the first counts
    const auto messages = messages_of({other_shape, good});
    REQUIRE(messages.size() == 2);
    CHECK(messages[0].empty());
    CHECK_THAT(messages[1], Contains("float32 [4], but the others are float32 [5]"));
  }
  {
    const auto messages = messages_of({at::Tensor(), at::Tensor()});
    REQUIRE(messages.size() == 2);
    CHECK_THAT(messages[0], Contains("undefined"));
  }
}

TEST_CASE("a tensor of results is split into views, without a copy", "[batch]") {
  const at::Tensor results = at::rand({3, 2, 5});
  using Split = BatchSplit<at::Tensor, at::Tensor>;
  CHECK(Split(at::Tensor(results)).size() == 3);
  const auto rows = split<at::Tensor>(results);
  REQUIRE(rows.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(identical(rows[i], results[static_cast<std::int64_t>(i)]));
    CHECK(rows[i].data_ptr() == results[static_cast<std::int64_t>(i)].data_ptr());
  }
  CHECK(split<at::Tensor>(at::rand({2})).at(0).dim() == 0);
  CHECK_THROWS_AS(Split(at::rand({})), InvalidArgument);
  CHECK_THROWS_AS(Split(at::Tensor()), InvalidArgument);
  const at::Tensor some = Split(at::Tensor(results)).rows(1, 2);
  CHECK(identical(some, results.narrow(0, 1, 2)));
  CHECK(some.data_ptr() == results[1].data_ptr());
}

TEST_CASE("a tensor of numbers is split into numbers of a type that holds them", "[batch]") {
  CHECK(split<std::int64_t>(at::arange(3)) == std::vector<std::int64_t>{0, 1, 2});
  CHECK(split<int>(at::arange(3)) == std::vector<int>{0, 1, 2});
  CHECK(split<std::uint8_t>(at::arange(254, 256)) == std::vector<std::uint8_t>{254, 255});
  CHECK(split<int>(at::arange(6, at::kByte).slice(0, 0, 6, 2)) == std::vector<int>{0, 2, 4});
  CHECK(split<float>(at::ones({2}) * 1.5) == std::vector<float>{1.5F, 1.5F});
  CHECK(split<double>(at::ones({2}, at::kHalf)) == std::vector<double>{1, 1});
  CHECK(split<double>(at::arange(2)) == std::vector<double>{0, 1});
  CHECK(split<bool>(at::arange(3) > 1) == std::vector<bool>{false, false, true});
  const at::Tensor with_graph = at::rand({2}).set_requires_grad(true) * 2;
  CHECK(split<float>(at::Tensor(with_graph)).size() == 2);

  CHECK_THAT(message_of([] { split<int>(at::rand({2})); }),
             Contains("float32 [2]") && Contains("integers"));
  CHECK_THAT(message_of([] {
               split<int>(at::zeros({2, 3}, at::kInt));
             }),
             Contains("int32 [2, 3]") && Contains("[2]"));
  CHECK_THAT(message_of([] { split<std::int8_t>(at::arange(300)); }),
             Contains("128") && Contains("8 bits"));
  CHECK_THAT(message_of([] { split<unsigned>(at::arange(-1, 1)); }),
             Contains("-1") && Contains("unsigned"));
  CHECK_THROWS_AS(split<bool>(at::arange(3)), InvalidArgument);
  CHECK_THROWS_AS((split<double>(at::complex(at::rand(2), at::rand(2)))), InvalidArgument);
}

TEST_CASE("a tuple of batches is split into rows of tuples", "[batch]") {
  using Split = BatchSplit<std::tuple<at::Tensor, float, int>,
                           std::tuple<at::Tensor, at::Tensor, std::vector<int>>>;
  const at::Tensor actions = at::rand({2, 3});
  std::tuple<at::Tensor, at::Tensor, std::vector<int>> results{actions, at::ones({2}), {7, 8}};
  const auto rows = split<std::tuple<at::Tensor, float, int>>(results);
  REQUIRE(rows.size() == 2);
  CHECK(identical(std::get<0>(rows[1]), actions[1]));
  CHECK(std::get<1>(rows[1]) == 1);
  CHECK(std::get<2>(rows[1]) == 8);
  CHECK_THAT(message_of([] {
               (void)Split({at::rand({2, 3}), at::ones({3}), {7, 8}}).size();
             }),
             Contains("2 and 3 rows"));
}

}  // namespace batch_test
}  // namespace batchrpc
