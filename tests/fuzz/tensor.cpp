#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/torch/tensor_header.hpp"
#include "batchrpc/wire/codec.hpp"
#include "fuzz/targets.hpp"

// The header of a tensor, which says what its bytes are: the first byte is how many of these came,
// the rest is the message. LibTorch sees only what passes these checks.

namespace batchrpc::fuzz {

void tensor(Input input) {
  if (input.empty()) return;
  const auto payload_bytes = std::to_integer<std::size_t>(input[0]);
  const Input message = input.subspan(1);
  const std::size_t count = message.size() / sizeof(Word);
  const auto memory = std::make_unique<Word[]>(count);
  std::memcpy(memory.get(), message.data(), count * sizeof(Word));
  const std::vector<Bytes> payloads{Bytes::allocate(payload_bytes)};
  Decoder decoder(std::span<const Word>(memory.get(), count), payloads);
  try {
    const auto [header] = decode_struct<detail::TensorHeader>(decoder, 0);
    require(!detail::describe_header(header).empty(), "a header without a description");
    const std::size_t bytes = detail::bytes_of(header);
    require(header.sizes.size() <= detail::kMaxTensorDimensions || header.type == 0,
            "too many dimensions");
    bool is_empty = header.type == 0;
    for (const std::int64_t size : header.sizes) {
      require(size >= 0 || header.type == 0, "a negative size");
      is_empty = is_empty || size == 0;
    }
    require((bytes == 0) == is_empty, "bytes without elements, or the other way");
    if (bytes > 0) {
      require(detail::payload_of(header, decoder).size() == bytes, "a payload of another size");
    }
  } catch (const BadMessage&) {
  }
}

}  // namespace batchrpc::fuzz
