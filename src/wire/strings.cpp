#include "batchrpc/wire/strings.hpp"

namespace batchrpc::detail {
namespace {

constexpr std::uint32_t kPayloadOffset = 1;  // in units of 32 bits
constexpr std::size_t kSizeWord = 1;
constexpr std::size_t kInlinePointer = 2;
constexpr Word kIsInline = 0;
constexpr Word kIsPayload = 1;

}  // namespace

void BytesEncodingBase::fill_inline(Encoder& encoder, std::size_t place,
                                    std::span<const std::byte> bytes) {
  encoder.words()[place + kSizeWord] = bytes.size();
  if (bytes.empty()) return;
  encoder.add_block(place + kInlinePointer, ElementSize::byte, bytes.data(), bytes.size(),
                    bytes.size());
}

void BytesEncodingBase::fill_payload(Encoder& encoder, std::size_t place, Bytes bytes) {
  Word* const data = encoder.words().data() + place;
  data[kSizeWord] = bytes.size();
  data[0] = kIsPayload;
  store(data, kPayloadOffset, encoder.add_payload(std::move(bytes)));
}

BytesEncodingBase::Received BytesEncodingBase::receive(Decoder& decoder, const StructView& view) {
  Received received;
  const auto kind = load<std::uint16_t>(view.data, 0);
  if (kind == kIsInline) {
    const ListView list = decoder.list(decoder.pointer(view, 0), ElementSize::byte, 1);
    if (list.size != ElementSize::byte) Decoder::fail("structs where bytes belong");
    received.bytes = {reinterpret_cast<const std::byte*>(decoder.words() + list.first), list.count};
  } else if (kind == kIsPayload) {
    received.payload = &decoder.payload(load<std::uint32_t>(view.data, kPayloadOffset));
    received.bytes = received.payload->span();
  } else {
    Decoder::fail("bytes that are neither in the message nor a payload");
  }
  if (received.bytes.size() != view.data[kSizeWord]) {
    Decoder::fail("bytes whose size differs from the size that it states");
  }
  return received;
}

}  // namespace batchrpc::detail
