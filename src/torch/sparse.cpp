#include "torch/sparse.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "batchrpc/torch/tensor.hpp"

namespace batchrpc::detail {
namespace {

using Numbers = std::vector<std::int64_t>;

void append(Numbers& structure, const at::Tensor& indices) {
  const at::Tensor dense = indices.to(c10::kCPU, at::kLong).contiguous();
  const auto* const data = dense.data_ptr<std::int64_t>();
  structure.insert(structure.end(), data, data + dense.numel());
}

[[noreturn]] void fail(const TensorHeader& header, const char* what) {
  Decoder::fail("a sparse tensor " + describe_header(header) + " " + what);
}

// What a message says about a sparse tensor. Throws BadMessage if an index is out of range.
class Structure {
 public:
  Structure(const TensorHeader& header, Decoder& decoder) : header_(header), decoder_(decoder) {
    const Bytes& payload = decoder.payload(header.payload);
    if (payload.size() % sizeof(std::int64_t) != 0) fail(header, "has a structure of another size");
    decoder.charge_payload(payload.size());
    numbers_.resize(payload.size() / sizeof(std::int64_t));
    std::memcpy(numbers_.data(), payload.data(), numbers_.size() * sizeof(std::int64_t));
  }

  at::Tensor coo() {
    const std::span<const std::int64_t> sizes = header_.sizes;
    const auto dimensions = static_cast<std::int64_t>(sizes.size());
    const std::int64_t sparse = take();
    const std::int64_t count = take();
    if (sparse < 1 || sparse > dimensions || count < 0 || left() / sparse != count ||
        left() % sparse != 0) {
      fail(header_, "has a structure of another size");
    }
    for (std::int64_t d = 0; d < sparse; ++d) {
      for (std::int64_t i = 0; i < count; ++i)
        check(rest()[at(d * count + i)], sizes[at(d)]);
    }
    const bool coalesced = header_.layout == TensorLayout::coalesced_coo;
    for (std::int64_t i = 1; coalesced && i < count; ++i) {
      if (!ascends(sparse, count, i)) fail(header_, "is not coalesced, as it says");
    }
    Numbers of_values(sizes.begin() + sparse, sizes.end());
    of_values.insert(of_values.begin(), count);
    const at::Tensor indices = tensor_of(rest(), {sparse, count});
    const at::Tensor values = values_of(of_values);
    at::Tensor tensor = at::_sparse_coo_tensor_unsafe(indices, values, shape(),
                                                      values.options().layout(c10::kSparse));
    return tensor._coalesced_(coalesced);
  }

  at::Tensor csr() {
    if (header_.sizes.size() != 2) fail(header_, "is CSR, but no matrix");
    const std::int64_t rows = header_.sizes[0];
    const std::int64_t count = take();
    if (count < 0 || left() - 1 - rows != count) fail(header_, "has a structure of another size");
    const auto starts = rest().first(at(rows + 1));
    const auto columns = rest().last(at(count));
    if (starts.front() != 0 || starts.back() != count) fail(header_, "has wrong row pointers");
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t begin = starts[at(row)];
      const std::int64_t end = starts[at(row + 1)];
      if (begin < 0 || end < begin || end > count) fail(header_, "has wrong row pointers");
      for (std::int64_t i = begin; i < end; ++i) {
        check(columns[at(i)], header_.sizes[1]);
        if (i > begin && columns[at(i)] <= columns[at(i - 1)]) {
          fail(header_, "has columns that do not ascend");
        }
      }
    }
    const at::Tensor values = values_of({count});
    return at::_sparse_csr_tensor_unsafe(tensor_of(starts, {rows + 1}), tensor_of(columns, {count}),
                                         values, shape(), values.options().layout(c10::kSparseCsr));
  }

 private:
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

  std::int64_t take() {
    if (taken_ == numbers_.size()) fail(header_, "has no structure");
    return numbers_[taken_++];
  }
  [[nodiscard]] std::span<const std::int64_t> rest() const {
    return std::span<const std::int64_t>(numbers_).subspan(taken_);
  }
  [[nodiscard]] std::int64_t left() const { return static_cast<std::int64_t>(rest().size()); }

  void check(std::int64_t index, std::int64_t size) const {
    if (index < 0 || index >= size) fail(header_, "has an index that is out of range");
  }

  // Whether element i comes after its predecessor, row-major.
  [[nodiscard]] bool ascends(std::int64_t sparse, std::int64_t count, std::int64_t i) const {
    for (std::int64_t d = 0; d < sparse; ++d) {
      const std::int64_t before = rest()[at(d * count + i - 1)];
      const std::int64_t now = rest()[at(d * count + i)];
      if (now != before) return now > before;
    }
    return false;
  }

  static at::Tensor tensor_of(std::span<const std::int64_t> numbers, at::IntArrayRef sizes) {
    at::Tensor tensor = at::empty(sizes, at::kLong);
    if (!numbers.empty()) {
      std::memcpy(tensor.data_ptr(), numbers.data(), numbers.size_bytes());
    }
    return tensor;
  }

  at::Tensor values_of(const Numbers& sizes) {
    return Codec<at::Tensor>::decode(
        {.type = header_.type, .payload = header_.payload + 1, .sizes = sizes}, decoder_);
  }

  [[nodiscard]] at::IntArrayRef shape() const {
    return {header_.sizes.data(), header_.sizes.size()};
  }

  const TensorHeader& header_;
  Decoder& decoder_;
  Numbers numbers_;
  std::size_t taken_ = 0;
};

}  // namespace

bool is_sendable_sparse(const at::Tensor& tensor) {
  if (tensor.layout() == c10::kSparse) return tensor.sparse_dim() > 0;
  return tensor.layout() == c10::kSparseCsr && tensor.dim() == 2 && tensor.values().dim() == 1;
}

void encode_sparse(const at::Tensor& tensor, TensorHeader& header, Encoder& encoder) {
  const c10::AutoGradMode no_grad(false);
  const at::Tensor sent = tensor.detach();
  Numbers structure;
  at::Tensor values;
  if (sent.layout() == c10::kSparse) {
    header.layout = sent.is_coalesced() ? TensorLayout::coalesced_coo : TensorLayout::coo;
    structure = {sent.sparse_dim(), sent._nnz()};
    append(structure, sent._indices());
    values = sent._values();
  } else {
    header.layout = TensorLayout::csr;
    structure = {sent._nnz()};
    append(structure, sent.crow_indices());
    append(structure, sent.col_indices());
    values = sent.values();
  }
  header.payload = encoder.add_payload(Bytes::copy(std::as_bytes(std::span(structure))));
  // A payload of its own, the next one.
  static_cast<void>(Codec<at::Tensor>::encode(values, encoder));
}

at::Tensor decode_sparse(const TensorHeader& header, Decoder& decoder) {
  Structure structure(header, decoder);
  switch (header.layout) {
    case TensorLayout::coo:
    case TensorLayout::coalesced_coo:
      return structure.coo();
    case TensorLayout::csr:
      return structure.csr();
    case TensorLayout::dense:
      break;
  }
  Decoder::fail("a tensor of an unknown layout, " +
                std::to_string(static_cast<unsigned>(header.layout)));
}

}  // namespace batchrpc::detail
