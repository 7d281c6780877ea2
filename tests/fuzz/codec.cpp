#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>

#include "batchrpc/base/error.hpp"
#include "fuzz/targets.hpp"
#include "wire/every_type.hpp"

// The decoder of every type: the first byte chooses the type, the second how many payloads travel
// beside the message, which is the rest. What was decoded is encoded and decoded again.

namespace batchrpc::fuzz {
namespace {

using wire_test::EveryType;
constexpr std::size_t kTypes = std::tuple_size_v<EveryType>;

template <class T>
void decode_as(std::span<const Word> words, std::span<const Bytes> payloads) {
  // Small, for what is decoded in a second is looked at once instead of a thousand times.
  Decoder decoder(words, payloads, {.traversal_words = 1 << 15, .payload_bytes = 1 << 16});
  std::optional<std::tuple<T>> value;
  try {
    value.emplace(decode_struct<T>(decoder, 0));
  } catch (const BadMessage&) {
    return;
  }
  Encoder encoder(1);
  encode_struct<T>(encoder, 0, std::get<0>(*value));
  Decoder second(encoder.words(), encoder.payloads());
  const std::tuple<T> again = decode_struct<T>(second, 0);
  require(wire_test::identical(std::get<0>(*value), std::get<0>(again)),
          "a value is another one when encoded and decoded again");
}

using Decode = void (*)(std::span<const Word>, std::span<const Bytes>);
constexpr auto kDecoders = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array<Decode, sizeof...(I)>{decode_as<std::tuple_element_t<I, EveryType>>...};
}
(std::make_index_sequence<kTypes>{});

}  // namespace

void codec(Input input) {
  if (input.size() < 2) return;
  const auto type = std::to_integer<std::size_t>(input[0]) % kTypes;
  const auto how = std::to_integer<std::size_t>(input[1]);
  const Input message = input.subspan(2);
  const std::size_t count = message.size() / sizeof(Word);
  const auto memory = std::make_unique<Word[]>(count);
  std::memcpy(memory.get(), message.data(), count * sizeof(Word));
  std::vector<Bytes> payloads;
  for (std::size_t i = 0; i < how % 4; ++i)
    payloads.push_back(Bytes::copy(message.first(std::min(message.size(), how * i))));
  kDecoders[type](std::span<const Word>(memory.get(), count), payloads);
}

}  // namespace batchrpc::fuzz
