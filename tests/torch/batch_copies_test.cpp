#include <chrono>
#include <optional>
#include <set>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/torch/batch.hpp"
#include "node/virtual_world.hpp"
#include "torch/tensors.hpp"

// How often the bytes of a row are copied on their way into its batch, and who owns them there.
namespace batchrpc {
namespace batch_copies_test {

using namespace std::chrono_literals;
using torch_test::identical;

constexpr std::int64_t kLarge = 16 * 1024;  // floats: 64 KiB

/// An agent and observers that send rows at once; the batches that the handler got are kept.
struct Sending {
  explicit Sending(std::size_t observers, BatchOptions options = {}) {
    if (options.min_size == 1) options.min_size = observers;
    batcher.emplace(options, [this](at::Tensor batch) {
      batches.push_back(batch);
      return batch * 2;
    });
    agent.expose("double", *batcher);
    for (std::size_t i = 0; i < observers; ++i)
      nodes.push_back(world.join("observer" + std::to_string(i)));
  }
  /// Every observer sends a row and gets it back doubled.
  void round(std::int64_t size) {
    std::vector<at::Tensor> rows;
    std::vector<Future<at::Tensor>> answers;
    for (const Node& node : nodes) {
      rows.push_back(at::rand({size}));
      answers.push_back(node.call<at::Tensor(at::Tensor)>("agent", "double", rows.back()));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const at::Tensor answer = answers[i].get();
      REQUIRE(at::equal(answer, rows[i] * 2));
    }
  }
  [[nodiscard]] BatchStatistics statistics() const { return batcher->statistics(); }

  std::vector<at::Tensor> batches;
  test::VirtualWorld world;
  Node agent = world.root("agent");
  std::optional<Batcher<at::Tensor(at::Tensor)>> batcher;
  std::vector<Node> nodes;
};

TEST_CASE("rows of 64 KiB and more are received where their batch is, without a copy", "[batch]") {
  Sending s(8, {.max_size = 8});
  for (int i = 0; i < 5; ++i)
    s.round(kLarge * (1 + i % 2));
  CHECK(s.statistics().rows_in_place == 40);
  CHECK(s.statistics().rows_copied == 0);
  CHECK(s.statistics().bytes_copied == 0);
  for (const at::Tensor& batch : s.batches) {
    CHECK(batch.is_contiguous());
    CHECK(batch.size(0) == 8);
    CHECK_FALSE(batch.requires_grad());
    CHECK(reinterpret_cast<std::uintptr_t>(batch.data_ptr()) % 64 == 0);
  }
}

TEST_CASE("batches smaller than max_size follow one another in one piece of memory", "[batch]") {
  Sending s(3, {.max_size = 8, .min_size = 3});
  for (int i = 0; i < 8; ++i)
    s.round(kLarge);
  CHECK(s.statistics().rows_in_place == 24);
  CHECK(s.statistics().rows_copied == 0);
}

TEST_CASE("a handler that keeps its batches gets to keep them, and others' memory is used again",
          "[batch]") {
  Sending s(4, {.max_size = 4});
  for (int i = 0; i < 6; ++i)
    s.round(kLarge);
  std::vector<at::Tensor> copies;
  for (const at::Tensor& batch : s.batches)
    copies.push_back(batch.clone());
  std::set<const void*> memory;
  for (const at::Tensor& batch : s.batches)
    memory.insert(batch.data_ptr());
  CHECK(memory.size() == 6);
  for (int i = 0; i < 6; ++i)
    s.round(kLarge);
  for (std::size_t i = 0; i < copies.size(); ++i)
    CHECK(identical(s.batches[i], copies[i]));

  s.batches.clear();
  memory.clear();
  for (int i = 0; i < 20; ++i) {
    s.round(kLarge);
    memory.insert(s.batches.back().data_ptr());
    s.batches.clear();
  }
  CHECK(memory.size() <= 4);
}

TEST_CASE("rows of several shapes are each received where their batches are", "[batch]") {
  Sending s(2, {.max_size = 4});
  for (int i = 0; i < 20; ++i)
    s.round(kLarge * (1 + i % 5));
  CHECK(s.statistics().rows_in_place == 40);
  CHECK(s.statistics().rows_copied == 0);
}

TEST_CASE("rows of any number of shapes that wait take no more memory than may wait", "[batch]") {
  Sending s(1, {.max_size = 64, .min_size = 2, .max_queue_bytes = std::size_t{64} << 20});
  std::vector<Future<at::Tensor>> answers;
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t i = 0; i < 100; ++i) {
      answers.push_back(
          s.nodes[0].call<at::Tensor(at::Tensor)>("agent", "double", at::zeros({kLarge + i})));
    }
  }
  for (auto& answer : answers)
    (void)answer.get();
  // A piece for 64 rows is 4 MiB and a little: 15 shapes have one, and the rows of others lie
  // alone.
  CHECK(s.statistics().rows_in_place == 30);
  CHECK(s.statistics().rows_copied == 170);
}

TEST_CASE("one batch may be changed without another noticing, also by autograd", "[batch]") {
  Sending s(2, {.max_size = 4, .min_size = 2});
  s.round(kLarge);
  s.round(kLarge);
  REQUIRE(s.batches.size() == 2);
  const at::Tensor weights = at::ones({kLarge}).set_requires_grad(true);
  const at::Tensor product = (s.batches[0] * weights).sum();  // keeps the batch for backward()
  s.batches[1].zero_();
  CHECK_NOTHROW(product.backward());
}

TEST_CASE("a small row is copied once, from where it was read to where its batch is", "[batch]") {
  Sending s(5, {.max_size = 16, .min_size = 5});
  for (int i = 0; i < 20; ++i)
    s.round(4);
  CHECK(s.statistics().rows_in_place == 100);  // so that this was the only copy
  CHECK(s.statistics().rows_copied == 0);
}

TEST_CASE("a row that is not received where its batch is, is copied once, into it", "[batch]") {
  test::VirtualWorld world;
  const Node agent = world.root("agent");
  const Batcher<at::Tensor(at::Tensor)> batcher({.min_size = 2},
                                                [](const at::Tensor& rows) { return rows; });
  agent.expose("f", batcher);
  const Node peer = world.join("peer");
  const at::Tensor row = at::rand({kLarge});
  const auto local = batcher(row);
  const auto remote = peer.call<at::Tensor(at::Tensor)>("agent", "f", row);
  CHECK(at::equal(remote.get(), row));
  CHECK(batcher.statistics().rows_copied == 2);
  CHECK(batcher.statistics().bytes_copied == 2 * row.nbytes());
}

TEST_CASE("a result leaves as a slice of the handler's output, uncopied", "[batch]") {
  at::Tensor output;
  test::VirtualWorld world;
  const Node node = world.root();
  const Batcher<at::Tensor(at::Tensor)> batcher({.min_size = 2}, [&](const at::Tensor& rows) {
    output = rows * 2;
    return output;
  });
  detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(node));
  const auto first = batcher(at::rand({kLarge}));
  const auto second = batcher.many()(at::rand({3, kLarge}));
  const at::Tensor row = first.get();
  const at::Tensor rows = second.get();
  CHECK(row.data_ptr() == output[0].data_ptr());
  CHECK(rows.data_ptr() == output[1].data_ptr());
  CHECK(rows.size(0) == 3);
}

TEST_CASE("padding follows rows where they were received", "[batch]") {
  Sending s(3, {.max_size = 8, .min_size = 3, .preferred_sizes = {4, 8}});
  s.round(kLarge);
  CHECK(s.statistics().rows_in_place == 3);
  CHECK(s.statistics().padding == 1);
  CHECK(s.batches[0].size(0) == 4);
  CHECK(identical(s.batches[0][3], s.batches[0][2]));
}

TEST_CASE("rows that are run again in halves are copied, so that a handler may change its batch",
          "[batch]") {
  Sending s(4, {.max_size = 4, .isolate = Isolate::bisect});
  s.round(kLarge);
  CHECK(s.statistics().rows_copied == 4);
}

TEST_CASE(
    "a batch that one peer brings whole is not copied, one of this process is the handler's own",
    "[batch]") {
  test::VirtualWorld world;
  const Node agent = world.root("agent");
  const Batcher<at::Tensor(at::Tensor)> batcher({}, [&](at::Tensor rows) { return rows.mul_(2); });
  agent.expose("f", batcher.many());
  const Node peer = world.join("peer");
  const at::Tensor rows = at::rand({4, 3});
  const at::Tensor before = rows.clone();
  CHECK(at::equal(peer.call<at::Tensor(at::Tensor)>("agent", "f", rows).get(), before * 2));
  CHECK(batcher.statistics().rows_copied == 0);
  CHECK(at::equal(batcher.many()(rows).get(), before * 2));
  CHECK(identical(rows, before));
  CHECK(batcher.statistics().rows_copied == 4);
}

TEST_CASE("several tensors of a row are each received in place", "[batch]") {
  test::VirtualWorld world;
  const Node agent = world.root("agent");
  const Batcher<at::Tensor(at::Tensor, int, at::Tensor)> batcher(
      {.max_size = 3, .min_size = 3},
      [](const at::Tensor& a, const std::vector<int>& factors, const at::Tensor& b) {
        return a * at::tensor(factors).unsqueeze(1) + b;
      });
  agent.expose("f", batcher);
  std::vector<Node> nodes;
  std::vector<Future<at::Tensor>> answers;
  for (int i = 0; i < 3; ++i) {
    nodes.push_back(world.join("observer" + std::to_string(i)));
    answers.push_back(nodes.back().call<at::Tensor(at::Tensor, int, at::Tensor)>(
        "agent", "f", at::full({kLarge}, i), 2, at::full({kLarge}, 100)));
  }
  for (int i = 0; i < 3; ++i)
    CHECK(at::equal(answers[static_cast<std::size_t>(i)].get(), at::full({kLarge}, 2 * i + 100)));
  CHECK(batcher.statistics().rows_copied == 0);
  CHECK(batcher.statistics().rows_in_place == 6);
}

TEST_CASE("a tensor behind an argument of another kind is received in place", "[batch]") {
  test::VirtualWorld world;
  const Node agent = world.root("agent");
  const Batcher<at::Tensor(int, at::Tensor)> batcher(
      {.max_size = 2, .min_size = 2}, [](const std::vector<int>& factors, const at::Tensor& rows) {
        return rows * at::tensor(factors).unsqueeze(1);
      });
  agent.expose("f", batcher);
  const Node peer = world.join("peer");
  for (const std::int64_t size : {std::int64_t{3}, kLarge}) {
    const at::Tensor row = at::rand({size});
    auto twice = peer.call<at::Tensor(int, at::Tensor)>("agent", "f", 2, row);
    auto thrice = peer.call<at::Tensor(int, at::Tensor)>("agent", "f", 3, row);
    CHECK(at::equal(std::move(twice).get(), row * 2));
    CHECK(at::equal(std::move(thrice).get(), row * 3));
  }
  CHECK(batcher.statistics().rows_copied == 0);
  CHECK(batcher.statistics().rows_in_place == 4);
}

TEST_CASE("a caller of many rows and callers of one share a batch of tensors", "[batch]") {
  test::VirtualWorld world;
  const Node agent = world.root("agent");
  std::vector<std::int64_t> sizes;
  const Batcher<at::Tensor(at::Tensor)> batcher({.min_size = 6}, [&](const at::Tensor& rows) {
    sizes.push_back(rows.size(0));
    return rows + 1;
  });
  agent.expose("one", batcher);
  agent.expose("many", batcher.many());
  const Node peer = world.join("peer");
  for (const std::int64_t size : {std::int64_t{3}, kLarge}) {
    const at::Tensor row = at::rand({size});
    const at::Tensor rows = at::rand({4, size});
    const auto one = peer.call<at::Tensor(at::Tensor)>("agent", "one", row);
    const auto many = peer.call<at::Tensor(at::Tensor)>("agent", "many", rows);
    const auto local = batcher(row);
    CHECK(at::equal(one.get(), row + 1));
    CHECK(at::equal(many.get(), rows + 1));
    CHECK(at::equal(local.get(), row + 1));
  }
  CHECK(sizes == std::vector<std::int64_t>{6, 6});
}

/// The mean of gradients, of which at most two are in memory at once.
struct Mean {
  void begin() { sum.zero_(); }
  void accumulate(const at::Tensor& gradient) {
    sum += gradient;
    memory->insert(gradient.data_ptr());
  }
  at::Tensor finish(const BatchInfo& info) { return sum / static_cast<double>(info.rows); }
  at::Tensor sum;
  std::set<const void*>* memory;
};

TEST_CASE("gradients of many trainers are added up while others wait at their senders", "[batch]") {
  constexpr std::int64_t kGradient = std::int64_t{4} << 20;  // floats: 16 MiB
  test::VirtualWorld world;
  const Node server = world.root("server");
  std::set<const void*> memory;
  const Batcher<at::Tensor(at::Tensor)> update({.min_size = 5},
                                               reduce(Mean{at::zeros({kGradient}), &memory}));
  server.expose("update", update);
  std::vector<Node> trainers;
  std::vector<Future<at::Tensor>> answers;
  for (int i = 0; i < 5; ++i) {
    trainers.push_back(world.join("trainer" + std::to_string(i)));
    answers.push_back(trainers.back().call<at::Tensor(at::Tensor)>(
        "server", "update", at::full({kGradient}, i, at::kFloat)));
  }
  for (auto& answer : answers)
    CHECK(at::equal(answer.get(), at::full({kGradient}, 2, at::kFloat)));
  CHECK(memory.size() <= 2);
}

}  // namespace batch_copies_test
}  // namespace batchrpc
