#include "torch/operator_guard.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/result_type.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "batchrpc/base/error.hpp"
#include "torch/result_elements.hpp"

namespace batchrpc::detail {
namespace {

using c10::IValue;

// Whether an operator divides integers, at least with some arguments: floor_divide_, div, ...
bool divides_integers(std::string_view name) noexcept {
  if (name.ends_with('_')) name.remove_suffix(1);
  constexpr std::string_view kDivisions[] = {"aten::div", "aten::divide", "aten::floor_divide",
                                             "aten::fmod", "aten::remainder"};
  return std::ranges::find(kDivisions, name) != std::end(kDivisions);
}

bool is_integer_scalar(const IValue& value) { return value.isInt() || value.isBool(); }

// Returns the type in which an operator computes with two arguments; empty if one is no number.
std::optional<at::ScalarType> common_type(const IValue& a, const IValue& b) {
  const bool numbers = (a.isTensor() || a.isScalar()) && (b.isTensor() || b.isScalar());
  if (!numbers || (a.isScalar() && b.isScalar())) return std::nullopt;
  if (a.isTensor() && b.isTensor()) return at::result_type(a.toTensor(), b.toTensor());
  if (a.isTensor()) return at::result_type(a.toTensor(), b.toScalar());
  return at::result_type(a.toScalar(), b.toTensor());
}

// Whether a number, or an element of a tensor, is `wanted` once it is converted to `type`.
bool has(const IValue& value, std::int64_t wanted, at::ScalarType type) {
  if (value.isTensor()) {
    return value.toTensor().to(type).eq(wanted).any().item<bool>();
  }
  if (!is_integer_scalar(value)) return false;
  const std::int64_t number = value.isInt() ? value.toInt() : std::int64_t{value.toBool()};
  return (type == at::kInt ? static_cast<std::int32_t>(number) : number) == wanted;
}

// Integers of fewer bits are divided as `int`.
bool overflows(const IValue& dividend, const IValue& divisor) {
  const auto type = common_type(dividend, divisor);
  if (!type || (*type != at::kInt && *type != at::kLong)) return false;
  const std::int64_t smallest = *type == at::kInt ? std::numeric_limits<std::int32_t>::min()
                                                  : std::numeric_limits<std::int64_t>::min();
  return has(divisor, -1, *type) && has(dividend, smallest, *type);
}

[[noreturn]] void refuse(const c10::FunctionSchema& schema, const std::string& why) {
  throw InvalidArgument("'" + schema.name() + "' was not called: " + why);
}

void check_division(const c10::FunctionSchema& schema, const std::vector<IValue>& stack) {
  const auto rounding = schema.argumentIndexWithName("rounding_mode");
  const bool rounds = rounding && !stack[static_cast<std::size_t>(*rounding)].isNone();
  const bool is_true_division = !rounds && schema.name().starts_with("aten::div");
  if (is_true_division || stack.size() < 2 || !overflows(stack[0], stack[1])) return;
  refuse(schema,
         "the smallest integer divided by -1 is no integer of its type; use a larger type, or "
         "floating-point numbers");
}

void check_groups(const c10::FunctionSchema& schema, const std::vector<IValue>& stack) {
  constexpr std::array<std::string_view, 3> kGroups{"group", "groups", "num_groups"};
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const std::string& name = schema.arguments()[i].name();
    if (stack[i].isInt() && stack[i].toInt() <= 0 &&
        std::ranges::find(kGroups, name) != kGroups.end()) {
      refuse(schema, "its argument '" + name + "' is " + std::to_string(stack[i].toInt()) +
                         ", but must be positive");
    }
  }
}

bool is_sparse(const IValue& value) {
  if (value.isTensor()) {
    return value.toTensor().defined() && value.toTensor().layout() != c10::kStrided;
  }
  if (!value.isList()) return false;
  const auto& list = value.toListRef();
  return std::any_of(list.begin(), list.end(), is_sparse);
}

std::string too_large(std::uint64_t bytes, std::uint64_t most) {
  return (bytes == kWithoutEnd ? std::string("more bytes than any memory has")
                               : std::to_string(bytes) + " bytes") +
         ", but may have at most " + std::to_string(most) +
         " (NodeOptions::limits.max_payload_bytes of the callee)";
}

void add_bytes(const IValue& result, std::uint64_t& bytes) {
  if (result.isTensor() && result.toTensor().defined()) {
    const at::Tensor& tensor = result.toTensor();
    bytes = sum_of(bytes, product_of(static_cast<std::uint64_t>(tensor.numel()),
                                     static_cast<std::uint64_t>(tensor.element_size())));
  } else if (result.isList()) {
    for (const IValue& each : result.toListRef())
      add_bytes(each, bytes);
  }
}

}  // namespace

OperatorGuard::OperatorGuard(std::string_view name, std::uint64_t most_bytes)
    : size_(size_of_operator(name.substr(0, name.find('.')))),
      divides_(divides_integers(name.substr(0, name.find('.')))),
      most_bytes_(most_bytes) {}

void OperatorGuard::check(const c10::FunctionSchema& schema,
                          const std::vector<IValue>& stack) const {
  // A few bytes may describe a sparse tensor of any size, which an operator may make dense.
  if (size_ && std::any_of(stack.begin(), stack.end(), is_sparse)) {
    refuse(schema, "an argument is a sparse tensor; send tensor.to_dense()");
  }
  if (divides_) check_division(schema, stack);
  check_groups(schema, stack);
  if (!size_) return;
  const OperatorArguments arguments(schema, stack);
  if (*size_ == OperatorSize::pieces && arguments.pieces() > kMostPieces) {
    refuse(schema, "its result would be " + std::to_string(arguments.pieces()) +
                       " tensors, but may be at most " + std::to_string(kMostPieces) +
                       "; ask for larger pieces");
  }
  const std::uint64_t bytes =
      product_of(arguments.result_elements(*size_), arguments.element_bytes());
  if (bytes > most_bytes_) {
    refuse(schema, "its result, or what it needs to compute it, would have " +
                       too_large(bytes, most_bytes_) + "; ask for less at once");
  }
}

void OperatorGuard::check_results(const std::vector<IValue>& results) const {
  std::uint64_t bytes = 0;
  for (const IValue& result : results)
    add_bytes(result, bytes);
  if (bytes > most_bytes_) {
    throw InvalidArgument("the result of the operator has " + too_large(bytes, most_bytes_) +
                          "; ask for less at once");
  }
}

}  // namespace batchrpc::detail
