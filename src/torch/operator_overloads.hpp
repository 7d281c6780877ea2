#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "torch/parsed_signature.hpp"
#include "torch/wire_values.hpp"

namespace batchrpc::detail {

/// The overloads of an operator, and which of them arguments mean. As in TorchScript: the first one
/// whose schema takes them as they are, else the first that takes them converted (an integer where
/// a floating point number is wanted). Arguments go by their places; those that are for keywords
/// only come last, and are left out before an overload without them is sought. What is left out has
/// its default. A number does for a list of numbers that has a fixed length.
class OperatorOverloads {
 public:
  using Handles = std::vector<c10::OperatorHandle>;

  /// Handles have schemas.
  explicit OperatorOverloads(Handles handles) : handles_(std::move(handles)) {}

  /// What is called, with all of its arguments.
  struct Choice {
    const c10::OperatorHandle* operation = nullptr;
    std::vector<c10::IValue> stack;
  };
  /// Nothing if no overload takes the arguments.
  [[nodiscard]] std::optional<Choice> choose(const std::vector<c10::IValue>& arguments) const;

  /// Those that may take arguments of such types, and have such a result.
  [[nodiscard]] OperatorOverloads called_as(const ParsedSignature& signature) const;

  [[nodiscard]] bool empty() const noexcept { return handles_.empty(); }
  /// The schemas, a line each, the first of them if there are many.
  [[nodiscard]] std::string schemas() const;

 private:
  Handles handles_;
};

/// Such as "Tensor (float32 [2, 3]), int".
[[nodiscard]] std::string describe_values(const std::vector<c10::IValue>& values);

}  // namespace batchrpc::detail
