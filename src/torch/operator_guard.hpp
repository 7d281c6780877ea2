#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "torch/operator_list.hpp"

namespace batchrpc::detail {

/// Refuses calls of one operator that are known to end the process or to take memory without bound,
/// because LibTorch's operators do not.
///
/// - Divisions of integers: the smallest integer divided by -1 is a signal, SIGFPE.
/// - Groups of channels: zero groups are the same.
/// - Sparse arguments of an operator in the list.
/// - Sizes: for an operator in the list (listed_operators()), results of more than `most_bytes`.
class OperatorGuard {
 public:
  /// `name` is the operator's, with its namespace.
  OperatorGuard(std::string_view name, std::uint64_t most_bytes);

  /// Throws InvalidArgument if an overload is not to run with the arguments of `stack`.
  void check(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& stack) const;
  /// Throws InvalidArgument if the results are too large to be sent, before they are copied for
  /// that: a result may be a view that repeats a few elements without end.
  void check_results(const std::vector<c10::IValue>& results) const;

 private:
  const std::optional<OperatorSize> size_;
  const bool divides_;
  const std::uint64_t most_bytes_;
};

}  // namespace batchrpc::detail
