#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "torch/operator_list.hpp"

namespace batchrpc::detail {

/// Stands for every number that is larger.
inline constexpr std::uint64_t kWithoutEnd = std::numeric_limits<std::uint64_t>::max();
/// The most results of an operator that cuts a tensor into pieces. Each is an object of some
/// hundred bytes, however small it is.
inline constexpr std::uint64_t kMostPieces = 65536;

[[nodiscard]] constexpr std::uint64_t product_of(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? kWithoutEnd : result;
}
[[nodiscard]] constexpr std::uint64_t sum_of(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? kWithoutEnd : result;
}

/// The arguments of a call of a listed operator, for an estimate of what it needs. Each size of
/// zero counts as one: a tensor without elements costs its sender nothing, whatever its other sizes
/// are, and the sum over its size of zero has elements.
class OperatorArguments {
 public:
  /// Keeps references.
  OperatorArguments(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& stack);

  /// Returns at least the number of elements of the largest result, or tensor on the way to it.
  [[nodiscard]] std::uint64_t result_elements(OperatorSize size) const;
  /// Returns the size of an element of the result. LibTorch may compute with larger ones.
  [[nodiscard]] std::uint64_t element_bytes() const;
  /// Returns the number of results of an operator that cuts a tensor into pieces.
  [[nodiscard]] std::uint64_t pieces() const;

 private:
  [[nodiscard]] const c10::IValue* find(std::string_view name) const;
  /// Returns the product of the list of integers that has one of two names. Negative ones, which
  /// stand for what fits, count as one. Without such a list it is one.
  [[nodiscard]] std::uint64_t product_of_list(std::string_view name, std::string_view other) const;
  /// Returns an argument that is a number, or `missing`.
  [[nodiscard]] double number(std::string_view name, double missing) const;
  [[nodiscard]] std::uint64_t broadcast() const;
  [[nodiscard]] std::uint64_t selected() const;
  [[nodiscard]] std::uint64_t range() const;

  const c10::FunctionSchema& schema_;
  const std::vector<c10::IValue>& stack_;
  std::vector<at::Tensor> tensors_;  // those of lists, too
};

}  // namespace batchrpc::detail
