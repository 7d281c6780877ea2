#include <ATen/ATen.h>

#include <array>
#include <catch2/catch.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/torch/ivalue.hpp"
#include "torch/exposed_operators.hpp"
#include "torch/parsed_signature.hpp"
#include "torch/tensors.hpp"

// What peers may send to operators.
namespace batchrpc {
namespace operator_texts_test {

using at::Tensor;
using torch_test::identical;
using Tensors = std::vector<Tensor>;
using Ints = std::vector<std::int64_t>;

/// Texts such as signatures, and worse.
class Texts {
 public:
  std::string next() {
    const bool is_formed = random_() % 2 == 0;
    if (!is_formed) return sequence(kPieces.size(), "");
    return kPieces[random_() % kFormed] + "(" + sequence(kFormed, ",") + ")";
  }
  std::mt19937& random() { return random_; }

 private:
  std::string sequence(std::size_t of, const char* separator) {
    std::string text;
    const std::size_t count = random_() % 6;
    for (std::size_t i = 0; i < count; ++i)
      text += (i > 0 ? separator : "") + kPieces[random_() % of];
    return text;
  }

  static constexpr std::size_t kFormed = 9;
  const std::vector<std::string> kPieces{"tensor",
                                         "i64",
                                         "f32",
                                         "str",
                                         "ivalue",
                                         "bool",
                                         "[tensor]",
                                         "i64?",
                                         "[i64;2]",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         "(",
                                         ")",
                                         ",",
                                         "?",
                                         ";",
                                         "2",
                                         "void",
                                         "u64",
                                         "map(",
                                         "^1",
                                         "<",
                                         "|",
                                         "set(",
                                         "dur(i64,1/1)",
                                         "\xff",
                                         " ",
                                         "999999999999999999999",
                                         std::string(1, '\0')};
  std::mt19937 random_{7};
};

TEST_CASE("a text is a signature, or is refused as none", "[operators]") {
  Texts texts;
  std::size_t parsed = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = texts.next();
    try {
      const auto signature = detail::ParsedSignature::parse(text);
      CHECK(text.starts_with(signature.result + "("));
      ++parsed;
    } catch (const BadSignature&) {  // the only thing that it throws
    }
  }
  CHECK(parsed > 1000);
  CHECK(parsed < 19'000);
  CHECK_THROWS_AS(detail::ParsedSignature::parse(""), BadSignature);
  CHECK_THROWS_AS(detail::ParsedSignature::parse("(tensor)"), BadSignature);
  CHECK_THROWS_AS(detail::ParsedSignature::parse("tensor(tensor"), BadSignature);
  CHECK_THROWS_AS(detail::ParsedSignature::parse(std::string(2000, '(') + ")"), BadSignature);
  std::string many = "void(";
  for (int i = 0; i < 65; ++i)
    many += i > 0 ? ",i64" : "i64";
  CHECK_THROWS_AS(detail::ParsedSignature::parse(many + ")"), BadSignature);
  CHECK(detail::ParsedSignature::parse("void()").arguments.fields().empty());
  CHECK(detail::ParsedSignature::parse("{tensor,[i64]}(i64?,[str])").results.fields().size() == 2);
}

TEST_CASE("arguments that are read by a text are those that were written by types", "[operators]") {
  const auto values = detail::ParsedSignature::parse(
      "void(bool,i8,tensor,f64,bool,u16,str,i32?,[i64;2],[bool],f32,ivalue,[tensor],[f32]?)");
  const Tensor x = at::rand({3});
  const auto message =
      torch_test::send<bool, std::int8_t, Tensor, double, bool, std::uint16_t, std::string,
                       std::optional<int>, std::array<std::int64_t, 2>, std::vector<bool>, float,
                       c10::IValue, Tensors, std::optional<std::vector<float>>>(
          true, std::int8_t{-3}, x, 2.5, false, std::uint16_t{65535}, "text", 7, {8, 9},
          {true, false}, 0.5F, c10::IValue(11), {x, x}, std::vector<float>{1.5F});
  Decoder decoder(message.words, message.payloads);
  const auto read = values.arguments.read(decoder, decoder.pointer(0));
  REQUIRE(read.size() == 14);
  CHECK(read[0].toBool());
  CHECK(read[1].toInt() == -3);
  CHECK(identical(read[2].toTensor(), x));
  CHECK(read[3].toDouble() == 2.5);
  CHECK_FALSE(read[4].toBool());
  CHECK(read[5].toInt() == 65535);
  CHECK(read[6].toStringRef() == "text");
  CHECK(read[7].toInt() == 7);
  CHECK(read[8].toIntVector() == Ints{8, 9});
  CHECK_FALSE(read[9].toBoolList().get(1));
  CHECK(read[10].toDouble() == 0.5);
  CHECK(read[11].toInt() == 11);
  CHECK(read[12].toTensorVector().size() == 2);
  CHECK(read[13].toDoubleVector() == std::vector<double>{1.5});
}

TEST_CASE("whatever signature and arguments a peer makes up, it is answered", "[operators]") {
  torch_test::ExposedOperators world(
      {"aten::add", "aten::cat", "aten::max", "aten::clamp", "aten::einsum"});
  const auto names = exposed_functions(world.b);
  Texts texts;
  std::size_t refused = 0;
  std::size_t answered = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::string text = texts.next();
    const detail::EncoderLease encoder;
    encode_struct<Tensor, std::string, std::int64_t, Tensors>(
        *encoder, wire::kBodyPointer, at::ones({2}), "ij,jk->ik", i, {at::ones({2, 2})});
    for (unsigned damage = texts.random()() % 4; damage > 0; --damage) {
      auto& words = (*encoder).words();
      const std::size_t at =
          wire::kBodyPointer + texts.random()() % (words.size() - wire::kBodyPointer);
      if (at > wire::kBodyPointer && at < wire::kEnvelopeWords) continue;  // not of the body
      words[at] ^= Word{1} << (texts.random()() % 64);
    }
    auto pending = detail::wait_for_reply<void>([](const detail::Reply& /*reply*/) {});
    detail::NodeAccess::submit(detail::NodeAccess::core(world.a).get(), "b",
                               detail::function_key(names[texts.random()() % names.size()], text),
                               {}, *encoder, std::move(pending.handler));
    try {
      std::move(pending.future).get();
      ++answered;
    } catch (const Error& error) {
      ++refused;
      CHECK(error.code() != ErrorCode::peer_lost);
    }
  }
  CHECK(refused > 0);
  CHECK(answered > 0);
  CHECK(identical(world.call<Tensor(Tensor)>("aten::max", at::ones({2})), at::ones({})));
}

}  // namespace operator_texts_test
}  // namespace batchrpc
