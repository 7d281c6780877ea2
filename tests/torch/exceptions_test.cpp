#include <catch2/catch.hpp>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/torch.hpp"
#include "node/virtual_world.hpp"
#include "torch/tensors.hpp"

// What LibTorch throws arrives in one sentence.

namespace batchrpc {
namespace exceptions_test {

using Catch::Contains;
using test::NodePair;
using test::outcome;

TEST_CASE("an exception of LibTorch comes without its stack, which the callee logs for debugging") {
  const NodePair pair;
  pair.b.expose("add", [] { return at::ones({2}).add(at::ones({3})); });
  const std::string text = test::message_of(outcome(pair.a.call<at::Tensor()>("b", "add")));
  CHECK_THAT(text, Contains("The size of tensor a (2) must match"));
  CHECK_THAT(text, !Contains("frame #") && !Contains("Exception raised"));
  CHECK(text.size() < 300);
  CHECK(pair.world.log.contain("'add' threw, in full: The size of tensor a (2)"));
  CHECK(pair.world.log.contain("frame #"));
}

TEST_CASE("a quantized row of a batch is refused in one sentence") {
  const Batcher<at::Tensor(at::Tensor)> twice({.max_size = 4},
                                              [](const at::Tensor& rows) { return rows * 2; });
  const auto quantized = at::quantize_per_tensor(at::ones({2}), 0.1, 0, at::kQInt8);
  const std::string text = test::message_of(outcome(twice(quantized)));
  CHECK_THAT(text, Contains("quantized") && Contains("dequantize()") && !Contains("frame #"));
  CHECK(at::equal(twice(at::ones({2})).get(), at::full({2}, 2)));
}

}  // namespace exceptions_test
}  // namespace batchrpc
