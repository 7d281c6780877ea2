#include "batchrpc/torch/tensor.hpp"

#include <map>
#include <optional>

#include "batchrpc/wire/envelope.hpp"
#include "batchrpc/wire/schema.hpp"
#include "torch/tensor_types.hpp"
#include "torch/tensors.hpp"
#include "torch/warnings.hpp"

namespace batchrpc {
namespace tensor_test {

using Catch::Matchers::Contains;
using torch_test::identical;
using torch_test::message_of;
using torch_test::random_tensor;
using torch_test::round_trip;
using torch_test::send;
using torch_test::Warnings;

constexpr std::int64_t kLarge = 64 * 1024;  // elements: more than what is copied

TEST_CASE("tensors of every type come back as they were sent", "[tensor]") {
  int count = 0;
  for (const detail::TensorType& type : detail::kTensorTypes) {
    if (type.scalar == at::ScalarType::Undefined) continue;
    INFO(type.name);
    REQUIRE(c10::elementSize(type.scalar) == type.bytes);
    for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{2, 3}, {}, {0}, {129, 257}}) {
      const at::Tensor sent = random_tensor(sizes, type.scalar);
      const at::Tensor came = round_trip(sent);
      REQUIRE(came.is_contiguous());
      REQUIRE(identical(came, sent));
    }
    ++count;
  }
  CHECK(count >= 13);
}

TEST_CASE("tensors of every shape come back, undefined and empty ones too", "[tensor]") {
  CHECK_FALSE(round_trip(at::Tensor()).defined());
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {}, {0}, {3, 0, 2}, {1}, {1, 1, 1}, {7, 1, 5}, std::vector<std::int64_t>(64, 1)}) {
    const at::Tensor sent = random_tensor(sizes, at::kFloat);
    CHECK(identical(round_trip(sent), sent));
  }
}

TEST_CASE("views come back dense, with their own values", "[tensor]") {
  for (const std::int64_t n : {std::int64_t{4}, std::int64_t{200}}) {
    const at::Tensor base = at::arange(2 * n * n * 3, at::kDouble).view({2, n, n, 3});
    const at::Tensor complex = at::complex(base, base + 1);
    const std::vector<at::Tensor> views = {
        base.transpose(1, 2),
        base.select(3, 1),
        base.slice(1, 1, n, 2),
        base.permute({0, 3, 1, 2}),
        base.select(0, 1).unsqueeze(0).expand({5, n, n, 3}),
        base.contiguous(at::MemoryFormat::ChannelsLast),
        at::conj(complex),
        at::imag(at::conj(complex)),
        base.narrow(0, 1, 1),
    };
    for (const at::Tensor& view : views) {
      INFO(view.sizes() << " " << view.strides());
      const at::Tensor came = round_trip(view);
      CHECK(came.is_contiguous());
      CHECK(at::equal(came, view));
      CHECK(came.scalar_type() == view.scalar_type());
    }
  }
}

TEST_CASE("a view of a large storage sends its own bytes only", "[tensor]") {
  const at::Tensor base = at::rand({1000, kLarge});
  Encoder encoder(1);
  encode_struct(encoder, 0, base.select(0, 7), base.slice(1, 0, 10).select(0, 3));
  REQUIRE(encoder.payloads().size() == 2);
  CHECK(encoder.payloads()[0].size() == kLarge * sizeof(float));
  CHECK(encoder.payloads()[0].data() ==
        static_cast<const std::byte*>(base.data_ptr()) + 7 * kLarge * sizeof(float));
  CHECK(encoder.payloads()[1].size() == 10 * sizeof(float));
}

TEST_CASE("views that share a storage arrive as tensors of their own", "[tensor]") {
  const at::Tensor base = at::zeros({2, kLarge});
  auto [whole, row] = send(base, base.select(0, 1)).decode<at::Tensor, at::Tensor>();
  row.fill_(1);
  CHECK(whole.sum().item<float>() == 0);
}

TEST_CASE("a large dense tensor is sent from where it lies, and kept until it has left",
          "[tensor]") {
  at::Tensor tensor = at::rand({kLarge});
  const at::Tensor expected = tensor.clone();
  const auto storage = tensor.storage().getWeakStorageImpl();
  Encoder encoder(1);
  encode_struct(encoder, 0, tensor);
  REQUIRE(encoder.payloads().size() == 1);
  CHECK(encoder.payloads()[0].data() == tensor.data_ptr());

  tensor = at::Tensor();
  CHECK_FALSE(storage.expired());
  Decoder decoder(encoder.words(), encoder.payloads());
  const auto [came] = decode_struct<at::Tensor>(decoder, 0);
  CHECK(came.data_ptr() == encoder.payloads()[0].data());
  encoder.reset(1);
  CHECK_FALSE(storage.expired());  // `came` looks at it
  CHECK(identical(came, expected));
}

TEST_CASE("a small tensor is copied when it is encoded", "[tensor]") {
  at::Tensor tensor = at::ones({static_cast<std::int64_t>(wire::kInlinePayloadBytes / 4)});
  Encoder encoder(1);
  encode_struct(encoder, 0, tensor);
  tensor.zero_();
  Decoder decoder(encoder.words(), encoder.payloads());
  const auto [came] = decode_struct<at::Tensor>(decoder, 0);
  CHECK(at::all(came == 1).item<bool>());
}

TEST_CASE("a received tensor uses the received memory, keeps it, and may be written", "[tensor]") {
  at::Tensor came;
  const void* received = nullptr;
  const at::Tensor sent = at::rand({kLarge});
  {
    const auto message = send(sent);
    received = message.payloads[0].data();
    came = std::get<0>(message.decode<at::Tensor>());
  }
  CHECK(came.data_ptr() == received);
  CHECK(reinterpret_cast<std::uintptr_t>(came.data_ptr()) % Bytes::kAlignment == 0);
  CHECK(identical(came, sent));
  came.add_(1);
  CHECK(at::equal(came, sent + 1));
}

TEST_CASE("bytes that are not aligned are copied to where they are", "[tensor]") {
  const at::Tensor sent = at::rand({8}, at::kDouble);
  auto message = send(sent);
  const Bytes shifted = Bytes::allocate(sent.nbytes() + 1);
  std::memcpy(shifted.mutable_data() + 1, sent.data_ptr(), sent.nbytes());
  message.payloads[0] = Bytes(shifted.owner(), shifted.span().subspan(1));
  CHECK(identical(std::get<0>(message.decode<at::Tensor>()), sent));
}

TEST_CASE("leaves keep requires_grad, and graphs do not travel", "[tensor]") {
  const at::Tensor leaf = at::rand({3}).set_requires_grad(true);
  const at::Tensor came = round_trip(leaf);
  CHECK(came.requires_grad());
  CHECK(came.is_leaf());
  (came * 2).sum().backward();
  CHECK(came.grad().defined());
  CHECK_FALSE(leaf.grad().defined());

  CHECK_FALSE(round_trip(at::rand({3})).requires_grad());
  CHECK_FALSE(round_trip(leaf * 2).requires_grad());
  CHECK_FALSE(round_trip(leaf.unsqueeze(0).expand({4, 3})).requires_grad());
  CHECK(round_trip(at::rand({0}).set_requires_grad(true)).requires_grad());
  CHECK(leaf.requires_grad());
}

TEST_CASE("what arrives does not depend on the modes of the thread that decodes", "[tensor]") {
  const auto message = send(at::rand({3}), at::empty({0}));
  const c10::InferenceMode inference;
  const auto [tensor, empty] = message.decode<at::Tensor, at::Tensor>();
  CHECK_FALSE(tensor.is_inference());
  CHECK_FALSE(empty.is_inference());
}

TEST_CASE("inference tensors can be sent", "[tensor]") {
  const c10::InferenceMode inference;
  const at::Tensor small = at::rand({3});
  const at::Tensor large = at::rand({2, kLarge});
  CHECK(identical(round_trip(small), small));
  CHECK(identical(round_trip(large), large));
  CHECK(identical(round_trip(large.t()), large.t()));
}

TEST_CASE("a gradient that is zero without memory arrives as zeros", "[tensor]") {
  const at::Tensor zeros = at::_efficientzerotensor({2, 3}, at::kFloat);
  CHECK(identical(round_trip(zeros), at::zeros({2, 3})));
}

TEST_CASE("what has no form on the wire is refused, and the message says what to do", "[tensor]") {
  const auto refusal = [](const at::Tensor& tensor) {
    return message_of<InvalidArgument>([&] { send(tensor); });
  };
  CHECK_THAT(refusal(at::quantize_per_tensor(at::rand({3}), 0.1, 0, at::kQInt8)),
             Contains("quantized") && Contains("dequantize()"));
  CHECK_THAT(refusal(at::eye(3).to_sparse_csc()), Contains("CSR") && Contains("to_dense()"));
  CHECK_THAT(refusal(at::empty({3}, at::TensorOptions().device(at::kMeta))), Contains("meta"));
  CHECK_THAT(refusal(at::empty({3}, at::kQInt8)), Contains("cannot be sent"));
  CHECK_THAT(refusal(at::zeros(std::vector<std::int64_t>(64, 1)).unsqueeze(0)),
             Contains("65 dimensions") && Contains("64"));
}

TEST_CASE("a tensor on a GPU arrives on the CPU", "[tensor][cuda]") {
  if (!torch::cuda::is_available()) {
    WARN("left out: there is no CUDA");
    return;
  }
  const at::Tensor sent = at::rand({3, kLarge}, at::TensorOptions().device(at::kCUDA));
  for (const at::Tensor& tensor : {sent, sent.t(), sent.select(1, 0)}) {
    const at::Tensor came = round_trip(tensor);
    CHECK(came.is_cpu());
    CHECK(at::equal(came, tensor.cpu()));
  }
}

struct Gradients {
  std::string layer{};
  at::Tensor weight{};
  std::vector<at::Tensor> rest{};
};

TEST_CASE("tensors travel inside of containers, optionals, tuples and aggregates", "[tensor]") {
  const at::Tensor a = at::rand({2, 3});
  const at::Tensor b = at::arange(5);

  const auto list = round_trip(std::vector<at::Tensor>{a, {}, b});
  REQUIRE(list.size() == 3);
  CHECK(identical(list[0], a));
  CHECK_FALSE(list[1].defined());
  CHECK(identical(list[2], b));

  const auto named = round_trip(std::map<std::string, at::Tensor>{{"w", a}, {"b", b}});
  REQUIRE(named.size() == 2);
  CHECK(identical(named.at("w"), a));
  CHECK(identical(named.at("b"), b));

  CHECK(identical(round_trip(std::optional(a)).value(), a));
  CHECK_FALSE(round_trip(std::optional<at::Tensor>()).has_value());

  const auto tuple = round_trip(std::tuple(a, 7, b));
  CHECK(identical(std::get<0>(tuple), a));
  CHECK(std::get<1>(tuple) == 7);
  CHECK(identical(std::get<2>(tuple), b));

  const auto gradients = round_trip(Gradients{"hidden", a, {b, a}});
  CHECK(gradients.layer == "hidden");
  CHECK(identical(gradients.weight, a));
  REQUIRE(gradients.rest.size() == 2);
  CHECK(identical(gradients.rest[0], b));
}

TEST_CASE("a tensor's signature is its name, and its schema shows its header", "[tensor]") {
  CHECK(signature<at::Tensor, const at::Tensor&, std::vector<at::Tensor>>() ==
        "tensor(tensor,[tensor])");
  CHECK_THAT((schema_text<void, at::Tensor>("f")),
             Contains("struct Tensor {") && Contains("UInt8") && Contains("Bool") &&
                 Contains("UInt32") && Contains("List(Int64)"));
}

// --- lies

using Sizes = std::vector<std::int64_t>;
constexpr std::uint8_t kFloat32 = detail::tensor_type_number(at::kFloat);

torch_test::Message lie(std::uint8_t type, const Sizes& sizes, std::size_t payload_bytes,
                        bool requires_grad = false, std::uint32_t payload = 0) {
  auto message = send(detail::TensorHeader{type, requires_grad, payload, sizes});
  message.payloads = {Bytes::allocate(payload_bytes)};
  std::fill_n(message.payloads[0].mutable_data(), payload_bytes, std::byte{1});
  return message;
}

TEST_CASE("a header that lies about its tensor is a BadMessage that says how", "[tensor]") {
  const auto refusal = [](const torch_test::Message& message) {
    return message_of<BadMessage>([&] { message.decode<at::Tensor>(); });
  };
  CHECK(std::get<0>(lie(kFloat32, {2, 3}, 24).decode<at::Tensor>()).defined());
  CHECK_THAT(refusal(lie(kFloat32, {2, 4}, 24)), Contains("float32 [2, 4], which takes 32 bytes") &&
                                                     Contains("but has a payload of 24 bytes"));
  CHECK_THAT(refusal(lie(kFloat32, {2, 2}, 24)),
             Contains("16 bytes, but has a payload of 24 bytes"));
  CHECK_THAT(refusal(lie(kFloat32, {}, 24)), Contains("4 bytes"));
  CHECK_THAT(refusal(lie(kFloat32, {-2, -3}, 24)), Contains("negative"));
  CHECK_THAT(refusal(lie(kFloat32, {6}, 24, false, 1)), Contains("payload that it does not have"));
  CHECK_THAT(refusal(lie(200, {6}, 24)), Contains("unknown type 200"));
  CHECK_THAT(refusal(lie(kFloat32, Sizes(65, 1), 4)), Contains("65 dimensions"));
  CHECK_THAT(refusal(lie(kFloat32, Sizes(100'000, 1), 4)), Contains("100000 dimensions"));
  const std::int64_t huge = std::int64_t{1} << 62;
  CHECK_THAT(refusal(lie(kFloat32, {huge, 4}, 24)), Contains("larger than any memory"));
  CHECK_THAT(refusal(lie(kFloat32, {huge, huge, huge, huge}, 24)), Contains("larger than any"));
  CHECK_THAT(refusal(lie(kFloat32, {huge, huge, 0}, 24)), Contains("larger than any memory"));
  CHECK_THAT(refusal(lie(kFloat32, {huge / 4}, 24)), Contains("but has a payload of 24 bytes"));
  CHECK_THAT(refusal(lie(detail::tensor_type_number(at::kInt), {6}, 24, true)),
             Contains("int32 [6]") && Contains("gradient"));
}

TEST_CASE("many headers cannot take more memory than the message may cost", "[tensor]") {
  const std::vector<std::int64_t> none{0};
  const std::vector<detail::TensorHeader> headers(
      400'000, detail::TensorHeader{kFloat32, false, 0, {none.data(), 1}});
  const auto message = send(headers);
  Decoder decoder(message.words, message.payloads, {.traversal_words = 4'000'000});
  CHECK_THROWS_AS(decode_struct<std::vector<at::Tensor>>(decoder, 0), BadMessage);
}

TEST_CASE("ten thousand mutated messages end in a tensor or a BadMessage", "[tensor]") {
  std::mt19937_64 random(7);
  const auto pick = [&](std::uint64_t bound) { return random() % bound; };
  constexpr std::array<std::int64_t, 10> kSizes{
      0, 1, 2, 3, 4, -1, 1 << 16, std::int64_t{1} << 32, std::int64_t{1} << 62, INT64_MIN};
  int tensors = 0;
  int refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    torch_test::Message message;
    if (i % 2 == 0) {  // a well-formed struct with any contents
      Sizes sizes(pick(5));
      for (std::int64_t& size : sizes)
        size = kSizes[pick(kSizes.size())];
      message = lie(static_cast<std::uint8_t>(pick(24)), sizes, pick(64), pick(2) == 0,
                    static_cast<std::uint32_t>(pick(8) / 7));
    } else {  // a true message with some bits turned
      const std::vector<at::Tensor> sent{at::ones({2, 3}), at::ones({0}), at::ones({4}, at::kLong)};
      message = send(sent, sent[0]);
      for (std::uint64_t flips = 1 + pick(4); flips > 0; --flips) {
        message.words[pick(message.words.size())] ^= Word{1} << pick(64);
      }
      if (pick(4) == 0) message.payloads.resize(pick(message.payloads.size() + 1));
    }
    try {
      double sum = 0;
      const auto touch = [&](const at::Tensor& tensor) {
        if (!tensor.defined() || tensor.numel() == 0) return;
        if (tensor.layout() != at::kStrided) return;
        const std::size_t bytes = tensor.nbytes();
        const auto* const data = static_cast<const unsigned char*>(tensor.data_ptr());
        sum += data[0] + data[bytes - 1];
        ++tensors;
      };
      if (i % 2 == 0) {
        touch(std::get<0>(message.decode<at::Tensor>()));
      } else {
        const auto [list, one] = message.decode<std::vector<at::Tensor>, at::Tensor>();
        for (const at::Tensor& tensor : list)
          touch(tensor);
        touch(one);
      }
      REQUIRE(sum >= 0);
    } catch (const BadMessage&) {
      ++refused;
    }
  }
  CHECK(tensors > 200);
  CHECK(refused > 200);
}

// --- a tensor that is written while it is being sent

TEST_CASE("a debug build warns of a tensor that was written while it was being sent", "[tensor]") {
  Warnings warnings;
  const Warnings::Guard guard(&warnings);
  at::Tensor tensor = at::ones({kLarge});
  Encoder encoder(1);
  encode_struct(encoder, 0, tensor);
  encoder.reset(1);  // it has left
  tensor.add_(1);
  CHECK(warnings.text.empty());

  encode_struct(encoder, 0, tensor);
  tensor.add_(1);
  encoder.reset(1);
#ifdef NDEBUG
  CHECK(warnings.text.empty());
#else
  CHECK_THAT(warnings.text, Contains("written to while it was being sent"));
#endif
}

}  // namespace tensor_test
}  // namespace batchrpc
