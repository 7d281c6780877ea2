#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace batchrpc::detail {

/// How large the results of an operator are, and what it needs, by its arguments.
enum class OperatorSize : unsigned char {
  inputs,     ///< no result has more elements than an argument, sizes of zero taken for one
  broadcast,  ///< its tensors are extended to one shape, that of the results
  together,   ///< as many elements as all arguments together
  size,       ///< a list of integers, `size` or `shape`, is the shape of the result
  repeats,    ///< a list of integers, `dims` or `repeats`, says how often the tensor is repeated
  count,      ///< integers, `n`, `m` and `steps`, are the sizes of the result
  range,      ///< `start`, `end` and `step` are numbers
  pieces,     ///< the results are pieces of the tensor, of which there may be many
  selected,   ///< `index` selects along `dim`, where something may be selected repeatedly
  product,    ///< of two matrices, or batches of them
  linear,     ///< of a matrix and a transposed one: the last sizes of both are summed over
  outer       ///< of the elements of two tensors
};

/// One of LibTorch's operators that expose_all_operators() exposes.
struct ListedOperator {
  std::string_view name;  ///< without "aten::"
  OperatorSize size;
};

/// The operators that were reviewed for callers who choose the arguments, sorted by their names:
/// those that compute element by element, reduce, compare, activate, multiply matrices, change
/// shapes, and create tensors. None trusts an argument to lie within a tensor, runs a number of
/// times that a value says, or is random in its size. Operators that write to an argument are not
/// meant, although some of these names have such overloads. A LibTorch need not have each of them.
[[nodiscard]] std::span<const ListedOperator> listed_operators() noexcept;

/// Returns how large the results of the operator are, by its name with "aten::"; empty if it is not
/// in the list.
[[nodiscard]] std::optional<OperatorSize> size_of_operator(std::string_view name) noexcept;

}  // namespace batchrpc::detail
