#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "torch/parsed_signature.hpp"
#include "torch/runtime_encoding.hpp"

namespace batchrpc::detail {

/// The overloads of an operator, and the choice between them. As in TorchScript, it chooses the
/// first overload whose schema accepts the arguments as they are, else the first that accepts them
/// converted (an integer for a floating-point number). Arguments are matched by position, and those
/// of a dict at their end (Keywords) by name. Keyword-only parameters come last; an overload that
/// can leave them out is preferred. Parameters without an argument get their default. A single
/// number is accepted for a list of numbers of fixed length.
class OperatorOverloads {
 public:
  using Handles = std::vector<c10::OperatorHandle>;

  /// Each handle must have a schema.
  explicit OperatorOverloads(Handles handles) : handles_(std::move(handles)) {}

  /// The chosen overload, with all of its arguments.
  struct Choice {
    const c10::OperatorHandle* operation = nullptr;
    std::vector<c10::IValue> stack;
  };
  /// Returns nothing if no overload accepts the arguments. `has_keywords`: the last one is a dict
  /// of arguments by name.
  [[nodiscard]] std::optional<Choice> choose(const std::vector<c10::IValue>& arguments,
                                             bool has_keywords) const;

  /// The overloads that may accept arguments of these types and have such a result.
  [[nodiscard]] OperatorOverloads called_as(const ParsedSignature& signature) const;

  /// The first of the keywords at the end of `values` that is in no schema; empty if there is none.
  [[nodiscard]] std::string unknown_keyword(const std::vector<c10::IValue>& values) const;

  [[nodiscard]] bool empty() const noexcept { return handles_.empty(); }
  /// The schemas, one per line; only the first ones if there are many.
  [[nodiscard]] std::string schemas() const;

 private:
  Handles handles_;
};

/// A text such as "Tensor (float32 [2, 3]), alpha=Int 2".
[[nodiscard]] std::string describe_values(const std::vector<c10::IValue>& values,
                                          bool has_keywords);

}  // namespace batchrpc::detail
