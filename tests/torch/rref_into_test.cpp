#include <chrono>

#include "batchrpc/torch.hpp"
#include "node/virtual_world.hpp"
#include "torch/tensors.hpp"

namespace rref_into {

/// Adds gradients up, and answers all with the same weights.
class Server {
 public:
  explicit Server(std::int64_t n) : weights_(at::zeros({n})) {}

  at::Tensor weights() { return weights_; }

 private:
  struct Sum {
    at::Tensor& weights;
    void accumulate(const at::Tensor& gradient) const {
      if (gradient.sizes() != weights.sizes()) {
        throw batchrpc::InvalidArgument("the gradient has another shape");
      }
      weights += gradient;
    }
    at::Tensor finish() const { return weights; }
  };
  at::Tensor weights_;

 public:
  batchrpc::Batcher<at::Tensor(at::Tensor)> update{
      {.max_size = 2, .max_wait = std::chrono::seconds(1)}, batchrpc::reduce(Sum{weights_})};
};

}  // namespace rref_into

namespace batchrpc {
namespace rref_into_test {

using rref_into::Server;
using test::outcome;
using torch_test::identical;

TEST_CASE("results of an object's methods and batchers are received into tensors", "[calls]") {
  test::NodePair pair;
  pair.b.expose_class<Server(std::int64_t)>();
  pair.b.expose<&Server::weights>();
  pair.b.expose<&Server::update>();
  constexpr std::int64_t kSize = 1'000'000;
  const auto server = pair.a.create<Server>("b", kSize);
  at::Tensor first = at::full({kSize}, 7.0);
  at::Tensor second = at::full({kSize}, 8.0);
  const void* const memory = first.data_ptr();
  call_into<&Server::weights>(server, first).get();
  CHECK(identical(first, at::zeros({kSize})));
  for (int round = 1; round <= 3; ++round) {
    Future<void> one = call_into<&Server::update>(server, first, at::full({kSize}, 1.0));
    Future<void> two = call_into<&Server::update>(server, second, at::full({kSize}, 2.0));
    one.get();
    two.get();
    CHECK(identical(first, at::full({kSize}, 3.0 * round)));
    CHECK(identical(second, first));
  }
  CHECK(first.data_ptr() == memory);
}

TEST_CASE("what an object's batcher refuses, and a handle to nothing, are errors of the future",
          "[calls]") {
  test::NodePair pair;
  pair.b.expose_class<Server(std::int64_t)>();
  pair.b.expose<&Server::update>();
  const auto server = pair.a.create<Server>("b", std::int64_t{1000});
  at::Tensor out = at::empty({1000});
  const auto wrong = outcome(call_into<&Server::update>(server, out, at::ones({999})));
  CHECK_THAT(wrong.message(), Catch::Matchers::Contains("another shape"));
  CHECK(outcome(call_into<&Server::update>(RRef<Server>(), out, at::ones({1000}))).code() ==
        ErrorCode::invalid_argument);
  CHECK(outcome(call_into<&Server::update>(server, at::empty({0}), at::ones({1000}))).code() ==
        ErrorCode::invalid_argument);
}

}  // namespace rref_into_test
}  // namespace batchrpc
