#include "batchrpc/torch/tensor_header.hpp"

#include "torch/tensor_elements.hpp"

namespace batchrpc::detail {

std::string describe_shape(std::span<const std::int64_t> sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i == kMaxTensorDimensions) {
      text += ", …";
      break;
    }
    text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
  }
  return text + "]";
}

std::string describe_header(const TensorHeader& header) {
  if (header.type == 0) return "an undefined tensor";
  const std::string type = header.type < kTensorElements.size()
                               ? std::string(kTensorElements[header.type].name)
                               : "type " + std::to_string(header.type);
  return (header.layout == TensorLayout::dense ? "" : "sparse ") + type + " " +
         describe_shape(header.sizes);
}

std::size_t bytes_of(const TensorHeader& header) {
  if (header.type == 0) return 0;
  if (header.type >= kTensorElements.size()) {
    Decoder::fail("a tensor of unknown type " + std::to_string(header.type));
  }
  if (header.sizes.size() > kMaxTensorDimensions) {
    Decoder::fail("a tensor of " + std::to_string(header.sizes.size()) +
                  " dimensions; the limit is " + std::to_string(kMaxTensorDimensions));
  }
  // LibTorch computes strides as if a size of zero were one, so the product of those must not
  // overflow either.
  std::int64_t product = kTensorElements[header.type].bytes;
  bool empty = false;
  for (const std::int64_t size : header.sizes) {
    if (size < 0) Decoder::fail("a tensor with a negative size, " + describe_header(header));
    empty = empty || size == 0;
    if (__builtin_mul_overflow(product, size == 0 ? 1 : size, &product)) {
      Decoder::fail("a tensor larger than any memory, " + describe_header(header));
    }
  }
  return empty ? 0 : static_cast<std::size_t>(product);
}

const Bytes& payload_of(const TensorHeader& header, const Decoder& decoder) {
  if (header.layout != TensorLayout::dense) {
    Decoder::fail("a tensor " + describe_header(header) +
                  ", where a dense one is needed; send tensor.to_dense()");
  }
  const std::size_t bytes = bytes_of(header);
  const Bytes& payload = decoder.payload(header.payload);
  if (payload.size() != bytes) {
    Decoder::fail("a tensor " + describe_header(header) + ", which takes " + std::to_string(bytes) +
                  " bytes, but has a payload of " + std::to_string(payload.size()) + " bytes");
  }
  return payload;
}

}  // namespace batchrpc::detail
