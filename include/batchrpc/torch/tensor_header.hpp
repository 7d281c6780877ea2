#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/wire/decoder.hpp"

/// What of a tensor is in a message, and the checks of it, which need no LibTorch.
namespace batchrpc::detail {

/// Most dimensions of a tensor that travels.
inline constexpr std::size_t kMaxTensorDimensions = 64;

/// What of a tensor is in the message. Its bytes, row-major and little-endian, are the payload
/// `payload`; a tensor without elements has none. The type's numbers are our own, in
/// src/torch/tensor_elements.hpp.
///
///     struct Tensor {
///       type @0 :UInt8;           # 0: an undefined tensor, whose other fields mean nothing
///       requiresGrad @1 :Bool;
///       payload @2 :UInt32;       # an index among what travels beside the message
///       sizes @3 :List(Int64);
///     }
struct TensorHeader {
  std::uint8_t type = 0;
  bool requires_grad = false;
  std::uint32_t payload = 0;
  std::span<const std::int64_t> sizes{};
};

/// Such as "float32 [64, 4]"; "an undefined tensor".
[[nodiscard]] BATCHRPC_EXPORT std::string describe_header(const TensorHeader& header);
/// Such as "[64, 4]".
[[nodiscard]] std::string describe_shape(std::span<const std::int64_t> sizes);

/// The bytes that the elements of such a tensor take. Throws BadMessage when there can be no such
/// tensor. Allocates nothing.
[[nodiscard]] BATCHRPC_EXPORT std::size_t bytes_of(const TensorHeader& header);

/// The payload of a tensor that has bytes. Throws BadMessage when its size is not what the header
/// says.
[[nodiscard]] BATCHRPC_EXPORT const Bytes& payload_of(const TensorHeader& header,
                                                      const Decoder& decoder);

}  // namespace batchrpc::detail
