#include "batchrpc/torch/batch.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "torch/device.hpp"
#include "torch/tensor_slabs.hpp"

namespace batchrpc {
namespace {

// Appends a number, small ones as one byte, so that the kinds of usual tensors need no allocation.
void append_number(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

void append_kind_of(const at::Tensor& tensor, std::int64_t first_dimension, std::string& kind) {
  kind.push_back(static_cast<char>(tensor.scalar_type()));
  kind.push_back(static_cast<char>(tensor.layout()));
  kind.push_back(static_cast<char>(tensor.device().type()));
  kind.push_back(static_cast<char>(tensor.device().index()));
  append_number(kind, static_cast<std::uint64_t>(tensor.dim() - first_dimension));
  for (std::int64_t i = first_dimension; i < tensor.dim(); ++i)
    append_number(kind, static_cast<std::uint64_t>(tensor.size(i)));
}

void require_row_of_batch(const at::Tensor& tensor) {
  if (!tensor.defined())
    throw InvalidArgument("a row of a batch is an undefined tensor; send a defined one");
  if (tensor.layout() != c10::kStrided) {
    throw InvalidArgument("a row of a batch is a sparse tensor; send tensor.to_dense()");
  }
  if (tensor.is_quantized())
    throw InvalidArgument("a row of a batch is quantized; send tensor.dequantize()");
  if (tensor.is_nested())
    throw InvalidArgument(
        "a row of a batch is a nested tensor; send the tensors of tensor.unbind()");
}

// The position of a row in memory that a Receiver gave.
struct RowSlot {
  std::shared_ptr<detail::TensorSlab> slab{};
  const std::byte* data = nullptr;

  [[nodiscard]] std::size_t index() const {
    return static_cast<std::size_t>(data - slab->data) / slab->row_bytes;
  }
};

RowSlot slot_of(const at::Tensor& row) {
  const Bytes* const bytes = detail::received_bytes(row);
  if (bytes == nullptr || row.data_ptr() != bytes->data()) return {};
  const detail::RowMemory* const memory = detail::RowMemories::of(*bytes);
  const std::shared_ptr<const void>& owner = memory != nullptr ? memory->owner : bytes->owner();
  if (std::get_deleter<detail::TensorSlab::Deleter>(owner) == nullptr) return {};
  auto slab = std::const_pointer_cast<detail::TensorSlab>(
      std::static_pointer_cast<const detail::TensorSlab>(owner));
  if (bytes->size() != slab->row_bytes) return {};
  return {std::move(slab), bytes->data()};
}

// Whether no other object refers to the tensor and could see it change.
bool is_sole(const at::Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.storage().use_count() == 1;
}

std::int64_t as_index(std::size_t value) { return static_cast<std::int64_t>(value); }

at::Tensor as_column(const at::Tensor& results, bool good_type, c10::ScalarType type,
                     const char* wanted) {
  if (results.dim() != 1 || !good_type) {
    throw InvalidArgument("the batch handler returned " + detail::describe_tensor(results) +
                          ", but its rows must be " + wanted + ": return a tensor of these, [" +
                          std::to_string(results.size(0)) + "]");
  }
  const bool is_it = results.is_cpu() && results.scalar_type() == type && results.is_contiguous();
  return is_it ? results : results.detach().to(c10::kCPU, type).contiguous();
}

template <class T>
std::vector<T> values_of(const at::Tensor& column) {
  const T* const first = column.data_ptr<T>();
  return std::vector<T>(first, first + column.numel());
}

}  // namespace

// --- rows

BatchTraits<at::Tensor>::Receiver::Receiver() : slabs_(std::make_shared<detail::TensorSlabs>()) {}

detail::RowMemory BatchTraits<at::Tensor>::Receiver::take(std::size_t bytes, std::size_t rows,
                                                          const std::string& device,
                                                          std::size_t limit) const {
  auto [slab, index] = slabs_->take({bytes, device.starts_with("cuda")}, rows, limit);
  const std::span<std::byte> room(slab->slot(index), bytes);
  return {.room = room, .owner = std::move(slab)};
}

void BatchTraits<at::Tensor>::check_device(const std::string& device) {
  (void)detail::device_of("BatchOptions::device", device);
}

const void* BatchTraits<at::Tensor>::place(const at::Tensor& row) { return slot_of(row).data; }

void BatchTraits<at::Tensor>::Builder::add(at::Tensor&& row) {
  ++real_rows_;
  parts_.push_back({std::move(row), false});
}

void BatchTraits<at::Tensor>::Builder::add_all(at::Tensor&& rows) {
  real_rows_ += static_cast<std::size_t>(rows.size(0));
  parts_.push_back({std::move(rows), true});
}

at::Tensor BatchTraits<at::Tensor>::Builder::finish(std::size_t padding) {
  if (parts_.empty()) throw InvalidArgument("the batch has no rows");
  require_one_kind();
  std::optional<at::Device> device;
  if (!how_.device.empty()) device.emplace(how_.device);
  at::Tensor batch;
  const bool is_whole = parts_.size() == 1 && parts_[0].many && padding == 0;
  if (is_whole && !how_.keep && is_sole(parts_[0].tensor) &&
      detail::received_bytes(parts_[0].tensor) != nullptr) {
    how_.outcome.rows_in_place += real_rows_;
    batch = std::move(parts_[0].tensor);
  } else if (on_graph()) {
    batch = join(padding);
  } else if (!how_.keep) {
    batch = where_received(padding);
  }
  if (!batch.defined()) batch = copy(padding);
  // This waits for the copy, because the memory may be reused at once.
  return device ? batch.to(*device) : batch;
}

void BatchTraits<at::Tensor>::Builder::require_one_kind() const {
  const auto sizes_of = [](const Part& part) {
    return part.many ? part.tensor.sizes().slice(1) : part.tensor.sizes();
  };
  const Part& first = parts_.front();
  for (const Part& part : parts_) {
    require_row_of_batch(part.tensor);
    if (part.tensor.scalar_type() == first.tensor.scalar_type() &&
        sizes_of(part) == sizes_of(first) && part.tensor.device() == first.tensor.device()) {
      continue;
    }
    throw InvalidArgument("a row of a batch is " + detail::describe_tensor(part.tensor) +
                          ", but the others are " + detail::describe_tensor(first.tensor));
  }
}

bool BatchTraits<at::Tensor>::Builder::on_graph() const {
  return c10::GradMode::is_enabled() &&
         std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return part.tensor.requires_grad(); });
}

// If rows were received side by side, returns their memory as the batch, without a copy; else an
// undefined tensor.
at::Tensor BatchTraits<at::Tensor>::Builder::where_received(std::size_t padding) const {
  const RowSlot first = slot_of(parts_.front().tensor);
  if (!first.slab) return {};
  const std::size_t index = first.index();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].many || !is_sole(parts_[i].tensor)) return {};
    const RowSlot slot = i == 0 ? first : slot_of(parts_[i].tensor);
    if (slot.slab != first.slab || slot.index() != index + i) return {};
  }
  const std::size_t rows = parts_.size();
  const auto slabs = first.slab->slabs.lock();
  if (padding > 0) {
    if (!slabs || !slabs->extend(*first.slab, index + rows, padding)) return {};
    for (std::size_t i = 0; i < padding; ++i) {
      std::memcpy(first.slab->slot(index + rows + i), first.slab->slot(index + rows - 1),
                  first.slab->row_bytes);
    }
  }
  if (slabs) slabs->batch_taken(*first.slab, index, rows + padding);
  how_.outcome.rows_in_place += rows;
  const at::Tensor& example = parts_.front().tensor;
  c10::SmallVector<std::int64_t, 8> sizes{as_index(rows + padding)};
  sizes.append(example.sizes().begin(), example.sizes().end());
  const c10::InferenceMode no_inference(false);
  using Kept = std::shared_ptr<detail::TensorSlab>;
  return at::for_blob(first.slab->slot(index), sizes)
      .context(new Kept(first.slab), [](void* kept) { delete static_cast<Kept*>(kept); })
      .target_device(c10::Device(c10::kCPU))
      .options(example.options().requires_grad(false))
      .make_tensor();
}

// Uses operations that autograd knows.
at::Tensor BatchTraits<at::Tensor>::Builder::join(std::size_t padding) const {
  std::vector<at::Tensor> parts;
  parts.reserve(parts_.size() + 1);
  for (const Part& part : parts_)
    parts.push_back(part.many ? part.tensor : part.tensor.unsqueeze(0));
  if (padding > 0) {
    const at::Tensor last = parts.back().narrow(0, parts.back().size(0) - 1, 1).detach();
    std::vector<std::int64_t> sizes = last.sizes().vec();
    sizes[0] = as_index(padding);
    parts.push_back(last.expand(sizes));
  }
  return at::cat(parts);
}

at::Tensor BatchTraits<at::Tensor>::Builder::copy(std::size_t padding) const {
  const c10::InferenceMode no_inference(false);
  const Part& example = parts_.front();
  std::vector<std::int64_t> sizes = example.tensor.sizes().vec();
  if (!example.many) sizes.insert(sizes.begin(), 0);
  sizes[0] = as_index(rows_);
  const bool pin = how_.device.starts_with("cuda") && example.tensor.is_cpu();
  at::Tensor batch =
      at::empty(sizes, example.tensor.options().requires_grad(false).pinned_memory(pin));
  const c10::AutoGradMode no_grad(false);
  std::int64_t row = 0;
  for (const Part& part : parts_) {
    const std::int64_t count = part.many ? part.tensor.size(0) : 1;
    const at::Tensor& from = part.tensor;
    if (from.is_cpu() && from.is_contiguous() && !from.is_conj() && !from.is_neg() &&
        !from._is_zerotensor()) {
      const std::size_t bytes = from.nbytes();
      auto* const to = static_cast<std::byte*>(batch.data_ptr()) +
                       static_cast<std::size_t>(row) * (bytes / static_cast<std::size_t>(count));
      if (bytes > 0) std::memcpy(to, from.data_ptr(), bytes);
    } else {
      batch.narrow(0, row, count).copy_(part.many ? from : from.unsqueeze(0));
    }
    how_.outcome.bytes_copied += from.nbytes();
    row += count;
  }
  how_.outcome.rows_copied += real_rows_;
  if (padding > 0) {
    batch.narrow(0, row, as_index(padding)).copy_(batch.narrow(0, row - 1, 1));
  }
  return batch;
}

bool BatchTraits<at::Tensor>::adjacent(const at::Tensor& row, const at::Tensor& next) {
  const RowSlot a = slot_of(row);
  const RowSlot b = slot_of(next);
  return a.slab != nullptr && a.slab == b.slab && b.index() == a.index() + 1;
}

std::size_t BatchTraits<at::Tensor>::rows(const at::Tensor& stacked) {
  if (!stacked.defined() || stacked.dim() == 0) {
    throw InvalidArgument("a call of several rows has " + detail::describe_tensor(stacked) +
                          ": its first dimension must be the rows");
  }
  return static_cast<std::size_t>(stacked.size(0));
}

at::Tensor BatchTraits<at::Tensor>::row(const at::Tensor& stacked, std::size_t index) {
  return stacked.select(0, as_index(index));
}

at::Tensor BatchTraits<at::Tensor>::repeat(const at::Tensor& value, std::size_t rows) {
  std::vector<std::int64_t> sizes = value.sizes().vec();
  sizes.insert(sizes.begin(), as_index(rows));
  return value.unsqueeze(0).expand(sizes);
}

std::size_t BatchTraits<at::Tensor>::bytes(const at::Tensor& row) {
  constexpr std::size_t kTensorBytes = 256;
  return kTensorBytes + (row.defined() && row.layout() == c10::kStrided ? row.nbytes() : 0);
}

void BatchTraits<at::Tensor>::append_kind(const at::Tensor& row, std::string& kind) {
  require_row_of_batch(row);
  append_kind_of(row, 0, kind);
}

void BatchTraits<at::Tensor>::append_kind_of_all(const at::Tensor& rows, std::string& kind) {
  require_row_of_batch(rows);
  append_kind_of(rows, 1, kind);
}

void require_row(const at::Tensor& row, at::ScalarType type, std::vector<std::int64_t> sizes) {
  const bool fits =
      row.defined() && row.scalar_type() == type && row.dim() == as_index(sizes.size()) &&
      std::equal(sizes.begin(), sizes.end(), row.sizes().begin(),
                 [](std::int64_t want, std::int64_t has) { return want == -1 || want == has; });
  if (fits) return;
  std::string wanted;
  for (const std::int64_t size : sizes)
    wanted += (wanted.empty() ? "" : ", ") + (size == -1 ? "any" : std::to_string(size));
  throw InvalidArgument("a row is " + detail::describe_tensor(row) + ", but must be " +
                        detail::describe_type(type) + " [" + wanted + "]");
}

// --- results

at::Tensor BatchSplit<at::Tensor, at::Tensor>::row(std::size_t i) {
  if (rows_.empty()) rows_ = results_.unbind(0);
  return std::move(rows_[i]);
}

at::Tensor BatchSplit<at::Tensor, at::Tensor>::rows(std::size_t first, std::size_t count) const {
  if (first == 0 && count == size_) return results_;
  return results_.narrow(0, as_index(first), as_index(count));
}

namespace detail {

std::size_t batch_size(const at::Tensor& results) {
  if (!results.defined() || results.dim() == 0) {
    throw InvalidArgument("the batch handler returned " + describe_tensor(results) +
                          ": its first dimension must be the batch");
  }
  return static_cast<std::size_t>(results.size(0));
}

std::vector<std::int64_t> integer_rows(const at::Tensor& results, const char* wanted) {
  const bool good = c10::isIntegralType(results.scalar_type(), /*includeBool=*/true);
  return values_of<std::int64_t>(as_column(results, good, c10::kLong, wanted));
}

std::vector<double> floating_rows(const at::Tensor& results, const char* wanted) {
  const bool good = c10::isIntegralType(results.scalar_type(), /*includeBool=*/true) ||
                    c10::isFloatingType(results.scalar_type());
  return values_of<double>(as_column(results, good, c10::kDouble, wanted));
}

std::vector<bool> bool_rows(const at::Tensor& results) {
  const bool good = results.scalar_type() == c10::kBool;
  return values_of<bool>(as_column(results, good, c10::kBool, "bools"));
}

void throw_out_of_range(std::int64_t value, std::size_t bits, bool is_signed) {
  throw InvalidArgument("the batch handler returned " + std::to_string(value) +
                        ", which does not fit the rows' type, " +
                        (is_signed ? "a signed" : "an unsigned") + " integer of " +
                        std::to_string(bits) + " bits");
}

}  // namespace detail
}  // namespace batchrpc
