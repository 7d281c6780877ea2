#pragma once

#include <cstdint>
#include <string_view>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/wire/codec.hpp"

namespace batchrpc::test {

/// Bytes that are sent beside the message, however few they are, like those of a tensor.
struct Blob {
  Bytes bytes;
};

}  // namespace batchrpc::test

template <>
struct batchrpc::Codec<batchrpc::test::Blob> {
  using Wire = std::uint32_t;
  static constexpr std::string_view name = "blob";
  static Wire encode(const test::Blob& blob, Encoder& encoder) {
    return encoder.add_payload(blob.bytes);
  }
  static test::Blob decode(Wire&& index, Decoder& decoder) { return {decoder.payload(index)}; }
};
