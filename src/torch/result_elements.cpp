#include "torch/result_elements.hpp"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

namespace batchrpc::detail {
namespace {

using c10::IValue;

std::uint64_t at_least_one(std::int64_t size) noexcept {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1));
}

/// Returns the product of sizes, without the last `left_out` ones.
std::uint64_t extent(const at::Tensor& tensor, std::size_t left_out = 0) {
  const at::IntArrayRef sizes = tensor.sizes();
  std::uint64_t product = 1;
  for (std::size_t i = 0; i + left_out < sizes.size(); ++i)
    product = product_of(product, at_least_one(sizes[i]));
  return product;
}

/// Returns the size `from_end` dimensions before the end; one if there is none.
std::uint64_t size_from_end(const at::Tensor& tensor, std::size_t from_end) {
  const at::IntArrayRef sizes = tensor.sizes();
  return from_end < sizes.size() ? at_least_one(sizes[sizes.size() - 1 - from_end]) : 1;
}

/// Returns the product of the shape to which both are extended, from the dimension that is
/// `from_end` before the end.
std::uint64_t extended(const at::Tensor& a, const at::Tensor& b, std::size_t from_end) {
  const std::size_t dimensions = std::max(a.sizes().size(), b.sizes().size());
  std::uint64_t product = 1;
  for (std::size_t i = from_end; i < dimensions; ++i)
    product = product_of(product, std::max(size_from_end(a, i), size_from_end(b, i)));
  return product;
}

/// Returns the largest of the product of two matrices, or batches of them, and the two factors,
/// which are extended to one batch.
std::uint64_t matrix_product(const at::Tensor& a, const at::Tensor& b) {
  const std::uint64_t batch = extended(a, b, 2);
  const std::uint64_t rows = a.dim() < 2 ? 1 : size_from_end(a, 1);
  const std::uint64_t between = size_from_end(a, 0);
  const std::uint64_t columns = b.dim() < 2 ? 1 : size_from_end(b, 0);
  const std::uint64_t largest = std::max(
      {product_of(rows, columns), product_of(rows, between), product_of(between, columns)});
  return product_of(batch, largest);
}

void add_tensors(const IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) tensors.push_back(value.toTensor());
  } else if (value.isList()) {
    for (const IValue& each : value.toListRef())
      add_tensors(each, tensors);
  }
}

}  // namespace

OperatorArguments::OperatorArguments(const c10::FunctionSchema& schema,
                                     const std::vector<IValue>& stack)
    : schema_(schema), stack_(stack) {
  for (const IValue& value : stack)
    add_tensors(value, tensors_);
}

std::uint64_t OperatorArguments::result_elements(OperatorSize size) const {
  std::uint64_t elements = 1;
  for (const at::Tensor& tensor : tensors_)
    elements = std::max(elements, extent(tensor));
  const std::size_t count = tensors_.size();
  const auto at_least = [&](std::uint64_t more) { return std::max(elements, more); };
  switch (size) {
    case OperatorSize::inputs:
    case OperatorSize::pieces:
      return elements;
    case OperatorSize::broadcast:
      return at_least(broadcast());
    case OperatorSize::together:
      elements = 0;
      for (const at::Tensor& tensor : tensors_)
        elements = sum_of(elements, extent(tensor));
      return elements;
    case OperatorSize::size:
      return at_least(product_of_list("size", "shape"));
    case OperatorSize::repeats:
      return product_of(elements, product_of_list("dims", "repeats"));
    case OperatorSize::count:
      for (const char* const name : {"n", "m", "steps"}) {
        const IValue* const argument = find(name);
        if (argument == nullptr || !argument->isInt()) continue;
        elements = product_of(elements, at_least_one(argument->toInt()));
      }
      // aten::eye(n) is a square.
      return schema_.name() == "aten::eye" && find("m") == nullptr ? product_of(elements, elements)
                                                                   : elements;
    case OperatorSize::range:
      return range();
    case OperatorSize::selected:
      return at_least(selected());
    case OperatorSize::product:
      return count < 2 ? elements
                       : at_least(matrix_product(tensors_[count - 2], tensors_[count - 1]));
    case OperatorSize::linear:
      return count < 2 ? elements
                       : at_least(product_of(extent(tensors_[0], 1), extent(tensors_[1], 1)));
    case OperatorSize::outer:
      return count < 2
                 ? elements
                 : at_least(product_of(extent(tensors_[count - 2]), extent(tensors_[count - 1])));
  }
  return kWithoutEnd;
}

std::uint64_t OperatorArguments::element_bytes() const {
  if (const IValue* const type = find("dtype"); type != nullptr && type->isInt()) {
    return c10::elementSize(static_cast<c10::ScalarType>(type->toInt()));
  }
  std::uint64_t bytes = tensors_.empty() ? sizeof(std::int64_t) : 1;
  for (const at::Tensor& tensor : tensors_)
    bytes = std::max(bytes, static_cast<std::uint64_t>(tensor.element_size()));
  return bytes;
}

std::uint64_t OperatorArguments::pieces() const {
  if (const IValue* const chunks = find("chunks")) return at_least_one(chunks->toInt());
  const IValue* const dimension = find("dim");
  if (tensors_.empty() || dimension == nullptr || !dimension->isInt()) return 1;
  const at::Tensor& tensor = tensors_.front();
  const std::int64_t dim = dimension->toInt() + (dimension->toInt() < 0 ? tensor.dim() : 0);
  if (dim < 0 || dim >= tensor.dim()) return 1;  // LibTorch refuses that
  const std::uint64_t size = at_least_one(tensor.size(dim));
  for (const char* const name : {"split_size", "split_sizes"}) {
    const IValue* const wanted = find(name);
    if (wanted == nullptr) continue;
    if (wanted->isList()) return wanted->toListRef().size();
    const std::uint64_t piece = at_least_one(wanted->toInt());
    return size / piece + (size % piece == 0 ? 0 : 1);
  }
  return size;  // aten::unbind
}

const IValue* OperatorArguments::find(std::string_view name) const {
  const auto index = schema_.argumentIndexWithName(std::string(name));
  return index ? &stack_[static_cast<std::size_t>(*index)] : nullptr;
}

std::uint64_t OperatorArguments::product_of_list(std::string_view name,
                                                 std::string_view other) const {
  const IValue* list = find(name);
  if (list == nullptr) list = find(other);
  if (list == nullptr || !list->isList()) return 1;
  std::uint64_t product = 1;
  for (const IValue& each : list->toListRef())
    product = product_of(product, each.isInt() ? at_least_one(each.toInt()) : 1);
  return product;
}

double OperatorArguments::number(std::string_view name, double missing) const {
  const IValue* const value = find(name);
  if (value == nullptr) return missing;
  if (value->isInt()) return static_cast<double>(value->toInt());
  return value->isDouble() ? value->toDouble() : missing;
}

std::uint64_t OperatorArguments::broadcast() const {
  std::size_t dimensions = 0;
  for (const at::Tensor& tensor : tensors_)
    dimensions = std::max(dimensions, tensor.sizes().size());
  std::uint64_t product = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    std::uint64_t largest = 1;
    for (const at::Tensor& tensor : tensors_)
      largest = std::max(largest, size_from_end(tensor, i));
    product = product_of(product, largest);
  }
  return product;
}

std::uint64_t OperatorArguments::selected() const {
  if (tensors_.size() < 2) return 1;
  const at::Tensor& from = tensors_.front();
  std::uint64_t product = extent(tensors_.back());
  const IValue* const dimension = find("dim");
  std::int64_t dim = dimension != nullptr && dimension->isInt() ? dimension->toInt() : 0;
  if (dim < 0) dim += from.dim();
  for (std::int64_t i = 0; i < from.dim(); ++i)
    product = i == dim ? product : product_of(product, at_least_one(from.size(i)));
  return product;
}

std::uint64_t OperatorArguments::range() const {
  const double start = number("start", 0);
  const double count = std::ceil((number("end", 0) - start) / number("step", 1));
  constexpr double kMost = 9e18;
  if (!(count > 0)) return 1;  // LibTorch refuses what is not a number
  return count < kMost ? static_cast<std::uint64_t>(count) : kWithoutEnd;
}

}  // namespace batchrpc::detail
