#include "torch/sparse.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "batchrpc/torch/module.hpp"
#include "batchrpc/torch/strided.hpp"
#include "torch/tensor_types.hpp"
#include "torch/tensors.hpp"
#include "torch/warnings.hpp"

// Sparse tensors, and those that keep their strides, as they travel.
namespace batchrpc {
namespace sparse_test {

using Catch::Matchers::Contains;
using detail::TensorLayout;
using torch_test::identical;
using torch_test::message_of;
using torch_test::round_trip;
using torch_test::send;
using torch_test::Warnings;
using Numbers = std::vector<std::int64_t>;

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.layout() == b.layout() && a._nnz() == b._nnz() && identical(a.to_dense(), b.to_dense());
}

TEST_CASE("COO tensors come back as they were sent", "[tensor]") {
  const at::Tensor matrix = at::rand({64, 48}) * (at::rand({64, 48}) < 0.3);
  const at::Tensor twice =
      at::sparse_coo_tensor(at::tensor({1, 1, 0}, at::kLong).unsqueeze(0), at::ones({3, 2}),
                            {4, 2});  // with a dense dimension, and two elements of one index
  const std::vector<at::Tensor> all{
      matrix.to_sparse(),
      matrix.to_sparse(1),
      matrix.to(at::kDouble).to_sparse(),
      at::ones({2, 3}, at::kBFloat16).to_sparse(),
      at::complex(matrix, matrix).to_sparse(),
      twice,
      twice.coalesce(),
      at::sparse_coo_tensor({5, 6}, at::TensorOptions(at::kFloat)),  // nothing but zeros
      at::zeros({0, 3}).to_sparse(),
  };
  for (const at::Tensor& sent : all) {
    INFO(sent.sizes() << " " << sent._nnz());
    const at::Tensor came = round_trip(sent);
    CHECK(same(came, sent));
    CHECK(came.sparse_dim() == sent.sparse_dim());
    CHECK(came.is_coalesced() == sent.is_coalesced());
    CHECK(identical(came._indices(), sent._indices()));
  }
}

TEST_CASE("CSR matrices come back as they were sent", "[tensor]") {
  const at::Tensor matrix = at::rand({64, 48}) * (at::rand({64, 48}) < 0.3);
  for (const at::Tensor& sent : {matrix.to_sparse_csr(), matrix.to(at::kDouble).to_sparse_csr(),
                                 at::zeros({3, 4}).to_sparse_csr()}) {
    const at::Tensor came = round_trip(sent);
    CHECK(same(came, sent));
    CHECK(identical(came.crow_indices(), sent.crow_indices()));
    CHECK(identical(came.col_indices(), sent.col_indices()));
  }
}

TEST_CASE("a sparse gradient can be added where it arrives, and a sparse leaf stays one",
          "[tensor]") {
  const at::Tensor weights = at::ones({10, 3}).set_requires_grad(true);
  const at::Tensor rows = at::tensor({2, 7, 2}, at::kLong);
  at::embedding(weights, rows, -1, false, /*sparse=*/true).sum().backward();
  const at::Tensor came = round_trip(weights.grad());
  at::Tensor sum = at::zeros({10, 3});
  sum.add_(came);
  CHECK(sum[2].sum().item<float>() == 6);
  CHECK(sum[7].sum().item<float>() == 3);
  CHECK_FALSE(came.requires_grad());
  CHECK(round_trip(at::eye(3).to_sparse().set_requires_grad(true)).requires_grad());
}

// A message whose structure is `numbers`, with values of `bytes` bytes.
torch_test::Message lie(TensorLayout layout, const Numbers& sizes, const Numbers& numbers,
                        std::size_t bytes) {
  auto message = send(detail::TensorHeader{
      .type = detail::tensor_type_number(at::kFloat), .sizes = sizes, .layout = layout});
  message.payloads = {Bytes::copy(std::as_bytes(std::span(numbers))), Bytes::allocate(bytes)};
  std::fill_n(message.payloads[1].mutable_data(), bytes, std::byte{1});
  return message;
}

TEST_CASE("a structure that contradicts its sparse tensor is a BadMessage", "[tensor]") {
  using enum TensorLayout;
  const auto refusal = [](const torch_test::Message& message) {
    return message_of<BadMessage>([&] { message.decode<at::Tensor>(); });
  };
  CHECK(std::get<0>(lie(coo, {3, 4}, {2, 2, 0, 2, 3, 3}, 8).decode<at::Tensor>()).defined());
  CHECK_THAT(refusal(lie(coo, {3, 4}, {2, 2, 0, 3, 3, 3}, 8)), Contains("out of range"));
  CHECK_THAT(refusal(lie(coo, {3, 4}, {2, 2, 0, -1, 3, 3}, 8)), Contains("out of range"));
  CHECK_THAT(refusal(lie(coo, {3, 4}, {2, 3, 0, 2, 3, 3}, 8)), Contains("of another size"));
  CHECK_THAT(refusal(lie(coo, {3, 4}, {3, 2, 0, 2, 3, 3}, 8)), Contains("of another size"));
  CHECK_THAT(refusal(lie(coo, {3, 4}, {0, 2}, 8)), Contains("of another size"));
  CHECK_THAT(refusal(lie(coo, {3, 4}, {2}, 8)), Contains("no structure"));
  CHECK_THAT(refusal(lie(coo, {3, 4}, {}, 8)), Contains("no structure"));
  CHECK_THAT(refusal(lie(coo, {3, 4}, {2, 2, 0, 2, 3, 3}, 12)), Contains("payload of 12 bytes"));
  CHECK_THAT(refusal(lie(coalesced_coo, {3, 4}, {2, 2, 2, 0, 3, 3}, 8)), Contains("coalesced"));
  CHECK_THAT(refusal(lie(coalesced_coo, {3, 4}, {2, 2, 2, 2, 3, 3}, 8)), Contains("coalesced"));
  CHECK(std::get<0>(lie(csr, {2, 3}, {2, 0, 1, 2, 0, 2}, 8).decode<at::Tensor>()).defined());
  CHECK_THAT(refusal(lie(csr, {2, 3}, {2, 0, 3, 2, 0, 2}, 8)), Contains("row pointers"));
  CHECK_THAT(refusal(lie(csr, {2, 3}, {2, 0, -1, 2, 0, 2}, 8)), Contains("row pointers"));
  CHECK_THAT(refusal(lie(csr, {2, 3}, {2, 1, 1, 2, 0, 2}, 8)), Contains("row pointers"));
  CHECK_THAT(refusal(lie(csr, {2, 3}, {2, 0, 1, 2, 0, 3}, 8)), Contains("out of range"));
  CHECK_THAT(refusal(lie(csr, {2, 3}, {2, 0, 2, 2, 2, 0}, 8)), Contains("ascend"));
  CHECK_THAT(refusal(lie(csr, {2, 3, 1}, {2, 0, 1, 2, 0, 2}, 8)), Contains("no matrix"));
  CHECK_THAT(refusal(lie(csr, {INT64_MAX / 8, 1}, {2, 0, 1, 2, 0, 2}, 8)), Contains("size"));
  CHECK_THAT(refusal(lie(static_cast<TensorLayout>(9), {2, 3}, {}, 8)), Contains("layout, 9"));
}

TEST_CASE("a tensor that keeps its strides comes back as a view", "[tensor]") {
  for (const std::int64_t n : {std::int64_t{4}, std::int64_t{200}}) {
    const at::Tensor base = at::arange(2 * n * n * 3, at::kDouble).view({2, n, n, 3});
    for (const at::Tensor& view : std::vector<at::Tensor>{
             base, base.transpose(1, 2), base.select(3, 1), base.slice(1, 1, n, 2),
             base.contiguous(at::MemoryFormat::ChannelsLast), base[1][2][3][1],
             base.narrow(0, 1, 0), at::conj(at::complex(base, base).transpose(1, 2))}) {
      INFO(view.sizes() << " " << view.strides());
      const at::Tensor came = round_trip(Strided{view}).tensor;
      CHECK(identical(came, view));
      CHECK(came.strides() == view.strides());
    }
  }
  CHECK_FALSE(round_trip(Strided{}).tensor.defined());
}

TEST_CASE("a strided tensor is sent at the size of its elements, and as a leaf if it is one",
          "[tensor]") {
  const at::Tensor expanded = at::ones({3, 1}).expand({3, 1'000'000});
  const auto message = send(Strided{expanded});
  REQUIRE(message.payloads.size() == 1);
  CHECK(message.payloads[0].size() == 3 * sizeof(float));
  CHECK(std::get<0>(message.decode<Strided>()).tensor.sum().item<float>() == 3'000'000);
  const at::Tensor leaf = at::ones({2, 3}).t().set_requires_grad(true);
  CHECK(round_trip(Strided{leaf}).tensor.requires_grad());
  CHECK(round_trip(Strided{leaf}).tensor.is_leaf());
  CHECK_THAT(message_of<InvalidArgument>([&] { send(Strided{at::eye(2).to_sparse()}); }),
             Contains("sparse or nested"));
}

TEST_CASE("a view that reaches beyond its elements is a BadMessage", "[tensor]") {
  const auto refusal = [](const Numbers& sizes, const Numbers& strides, bool grad = false,
                          const at::Tensor& elements = at::arange(6)) {
    const auto message = send(Codec<Strided>::Wire{grad, elements, sizes, strides});
    return message_of<BadMessage>([&] { message.decode<Strided>(); });
  };
  CHECK_THAT(refusal({2, 4}, {3, 1}), Contains("reaches beyond"));
  CHECK_THAT(refusal({7}, {1}), Contains("reaches beyond"));
  CHECK_THAT(refusal({INT64_MAX / 16}, {INT64_MAX}), Contains("reaches beyond"));
  CHECK_THAT(refusal({INT64_MAX, INT64_MAX}, {0, 0}), Contains("larger than any memory"));
  CHECK_THAT(refusal({2}, {-1}), Contains("negative"));
  CHECK_THAT(refusal({-2}, {1}), Contains("negative"));
  CHECK_THAT(refusal({2, 3}, {3}), Contains("1 strides"));
  CHECK_THAT(refusal(Numbers(65, 1), Numbers(65, 1)), Contains("65 dimensions"));
  CHECK_THAT(refusal({2}, {1}, true), Contains("gradient"));
  CHECK_THAT(refusal({2}, {1}, false, at::ones({2, 3})), Contains("no row of elements"));
}

TEST_CASE("a received Strided may be written, also while autograd records", "[tensor]") {
  const at::Tensor came = round_trip(Strided{at::ones({2, 3}).t()}).tensor;
  const at::Tensor leaf = at::ones({3, 2}).set_requires_grad(true);
  came.add_(leaf);
  CHECK(came.requires_grad());
  CHECK(came.sum().item<float>() == 12);
}

TEST_CASE("a sparse tensor that has no dense form is refused when it is sent", "[tensor]") {
  const std::int64_t huge = std::int64_t{1} << 40;
  const at::Tensor empty =
      at::sparse_coo_tensor({huge, std::int64_t{1} << 22}, at::TensorOptions(at::kFloat));
  CHECK_THAT(message_of<InvalidArgument>([&] { send(empty); }), Contains("2^63 bytes"));
  CHECK_THAT(message_of<InvalidArgument>([] { send(at::eye(3).to_sparse_csc()); }),
             Contains("COO"));
}

TEST_CASE("a state or an update with a sparse tensor is refused whole", "[tensor]") {
  torch::nn::Linear net(2, 2);
  ModuleState state = state_of(*net).clone();
  state.parameters["bias"].zero_();
  state.parameters["weight"] = state.parameters["weight"].to_sparse();
  const at::Tensor before = net->bias.detach().clone();
  CHECK_THAT(message_of<InvalidArgument>([&] { load_state(*net, state); }),
             Contains("sparse float32 [2, 2] in the state"));
  CHECK(identical(net->bias, before));
}

TEST_CASE("a graph that is cut off is warned of", "[tensor]") {
  Warnings warnings;
  const Warnings::Guard guard(&warnings);
  Warnings::always(true);
  const at::Tensor leaf = at::ones({2}).set_requires_grad(true);
  send(leaf);
  send((leaf * 2).detach());
  CHECK(warnings.text.empty());
  SECTION("of a tensor") { send(leaf * 2); }
  SECTION("of a view with its strides") { send(Strided{leaf * 2}); }
  CHECK_THAT(warnings.text, Contains("sent without its graph"));
  Warnings::always(false);
}

TEST_CASE("ten thousand mutated sparse and strided messages end in a tensor or a BadMessage",
          "[tensor]") {
  std::mt19937_64 random(11);
  int tensors = 0;
  for (int i = 0; i < 10'000; ++i) {
    auto message =
        send(at::eye(3).to_sparse(), at::eye(3).to_sparse_csr(), Strided{at::ones({2, 3}).t()});
    for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      if (random() % 2 == 0) {
        message.words[random() % message.words.size()] ^= Word{1} << (random() % 64);
      } else {
        const Bytes& payload = message.payloads[random() % message.payloads.size()];
        payload.mutable_data()[random() % payload.size()] ^= std::byte{1} << (random() % 8);
      }
    }
    try {
      const auto [coo, csr, view] = message.decode<at::Tensor, at::Tensor, Strided>();
      for (const at::Tensor& tensor : {coo, csr, view.tensor}) {
        if (!tensor.defined() || tensor.numel() > 1000) continue;
        tensors += tensor.to_dense().numel() >= 0 ? 1 : 0;
      }
    } catch (const BadMessage&) {
    }
  }
  CHECK(tensors > 1000);
}

}  // namespace sparse_test
}  // namespace batchrpc
