#pragma once

#include <ATen/core/Tensor.h>

#include "batchrpc/torch/tensor_header.hpp"
#include "batchrpc/wire/decoder.hpp"
#include "batchrpc/wire/encoder.hpp"

/// Sparse tensors on the wire: COO and CSR. The header has the shape of the whole tensor. Its
/// payload, the structure, is a row of little-endian int64:
///
/// | layout | structure |
/// | --- | --- |
/// | COO | s, the number of sparse dimensions; n, the number of elements; the indices, [s, n] |
/// | CSR | n; the row pointers, [rows + 1]; the column indices, [n] |
///
/// The next payload has the values: [n, d…] for the dense dimensions d of COO, [n] for CSR. It is
/// absent if they take no bytes.
namespace batchrpc::detail {

/// Whether this is a tensor that encode_sparse() takes: COO, or CSR without further dimensions.
[[nodiscard]] bool is_sendable_sparse(const at::Tensor& tensor);

/// Adds the payloads of the tensor, and sets layout and payload of its header. The caller must have
/// checked is_sendable_sparse(). The columns of a row of a CSR matrix must ascend, as LibTorch's
/// own checks demand, or the receiver refuses it.
void encode_sparse(const at::Tensor& tensor, TensorHeader& header, Encoder& encoder);

/// Returns the tensor. Throws BadMessage if its structure contradicts its shape, for example by an
/// index that is out of range.
[[nodiscard]] at::Tensor decode_sparse(const TensorHeader& header, Decoder& decoder);

}  // namespace batchrpc::detail
