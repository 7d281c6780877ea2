#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/wire/decoder.hpp"

/// The part of a tensor that is in a message, and its checks. Needs no LibTorch.
namespace batchrpc::detail {

/// The largest number of dimensions of a tensor that can be sent.
inline constexpr std::size_t kMaxTensorDimensions = 64;

/// How the elements of a tensor lie in its payloads.
enum class TensorLayout : std::uint8_t { dense, coo, coalesced_coo, csr };

/// The part of a tensor that is in the message. The bytes of a dense tensor, row-major and
/// little-endian, are the payload with the index `payload`; a tensor without elements has no
/// payload. src/torch/sparse.hpp has the payloads of sparse tensors, and
/// src/torch/tensor_elements.hpp numbers the types.
///
///     struct Tensor {
///       type @0 :UInt8;           # 0: an undefined tensor, whose other fields mean nothing
///       requiresGrad @1 :Bool;
///       payload @2 :UInt32;       # an index among what travels beside the message
///       sizes @3 :List(Int64);
///       layout @4 :UInt8;         # TensorLayout
///     }
struct TensorHeader {
  std::uint8_t type = 0;
  bool requires_grad = false;
  std::uint32_t payload = 0;
  std::span<const std::int64_t> sizes{};
  TensorLayout layout = TensorLayout::dense;
};

/// A text such as "float32 [64, 4]" or "an undefined tensor".
[[nodiscard]] BATCHRPC_EXPORT std::string describe_header(const TensorHeader& header);
/// A text such as "[64, 4]".
[[nodiscard]] std::string describe_shape(std::span<const std::int64_t> sizes);

/// The number of bytes of the tensor's elements, as if it were dense. Throws BadMessage if no such
/// tensor can exist. Allocates nothing.
[[nodiscard]] BATCHRPC_EXPORT std::size_t bytes_of(const TensorHeader& header);

/// The payload of a dense tensor that has bytes. Throws BadMessage if its size contradicts the
/// header, or if the tensor is sparse.
[[nodiscard]] BATCHRPC_EXPORT const Bytes& payload_of(const TensorHeader& header,
                                                      const Decoder& decoder);

}  // namespace batchrpc::detail
