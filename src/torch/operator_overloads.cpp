#include "torch/operator_overloads.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>
#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "batchrpc/torch/tensor.hpp"

namespace batchrpc::detail {
namespace {

using c10::Argument;
using c10::FunctionSchema;
using c10::IValue;
using c10::TypeKind;

// The conversions that are allowed when arguments are matched.
struct Leniency {
  bool converts = false;  // numbers are converted to the schema's type
  bool keywords = false;  // keyword-only arguments may be passed by position
};
constexpr Leniency kLeniencies[] = {{false, false}, {true, false}, {false, true}, {true, true}};

template <class Enum>
bool is_below(std::int64_t value, Enum end) {
  return value >= 0 && value < static_cast<std::int64_t>(end);
}

// LibTorch takes its enums as integers and does not check their values.
bool is_enumerator(std::int64_t value, TypeKind of) {
  switch (of) {
    case TypeKind::ScalarTypeType:
      return is_below(value, c10::ScalarType::NumOptions) &&
             value != static_cast<std::int64_t>(c10::ScalarType::Undefined);
    case TypeKind::LayoutType:
      return is_below(value, c10::Layout::NumOptions);
    case TypeKind::MemoryFormatType:
      return is_below(value, c10::MemoryFormat::NumOptions);
    default:
      return true;
  }
}

// The type that a schema's argument needs. `real` is the type that integers of `type` stand for.
struct Wanted {
  const c10::Type& type;
  const c10::Type& real;
  std::optional<std::int64_t> length;
};

Wanted inside(const Wanted& wanted, const c10::TypePtr& element) {
  const auto* const option = wanted.real.castRaw<c10::OptionalType>();
  const auto* const list = wanted.real.castRaw<c10::ListType>();
  const c10::Type& real =
      option != nullptr && wanted.type.kind() == TypeKind::OptionalType ? *option->getElementType()
      : list != nullptr && wanted.type.kind() == TypeKind::ListType     ? *list->getElementType()
                                                                        : *element;
  return {*element, real, std::nullopt};
}

std::optional<IValue> take(const IValue& value, const Wanted& wanted, bool converts);

std::optional<IValue> take_list(const IValue& value, const Wanted& wanted, bool converts) {
  const c10::TypePtr& element = wanted.type.castRaw<c10::ListType>()->getElementType();
  const Wanted of_elements = inside(wanted, element);
  c10::impl::GenericList list(element);
  if (value.isList()) {
    const c10::ArrayRef<IValue> elements = value.toListRef();
    list.reserve(elements.size());
    for (const IValue& each : elements) {
      auto taken = take(each, of_elements, converts);
      if (!taken) return std::nullopt;
      list.push_back(*std::move(taken));
    }
    return IValue(std::move(list));
  }
  if (!wanted.length) return std::nullopt;
  const auto taken = take(value, of_elements, converts);
  if (!taken) return std::nullopt;
  for (std::int64_t i = 0; i < *wanted.length; ++i)
    list.push_back(*taken);
  return IValue(std::move(list));
}

std::optional<IValue> take(const IValue& value, const Wanted& wanted, bool converts) {
  const auto as_it_is = [&](bool fits) { return fits ? std::optional(value) : std::nullopt; };
  const TypeKind kind = wanted.type.kind();
  switch (kind) {
    case TypeKind::OptionalType: {
      if (value.isNone()) return value;
      Wanted present = inside(wanted, wanted.type.castRaw<c10::OptionalType>()->getElementType());
      present.length = wanted.length;
      return take(value, present, converts);
    }
    case TypeKind::TensorType:
      return as_it_is(value.isTensor() && value.toTensor().defined());
    case TypeKind::NumberType:
      return as_it_is(value.isInt() || value.isDouble() || value.isBool() ||
                      value.isComplexDouble());
    case TypeKind::IntType:
    case TypeKind::SymIntType:
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType:
      return as_it_is(value.isInt() && is_enumerator(value.toInt(), wanted.real.kind()) &&
                      is_enumerator(value.toInt(), kind));
    case TypeKind::FloatType:
    case TypeKind::SymFloatType:
      if (converts && value.isInt()) return IValue(static_cast<double>(value.toInt()));
      return as_it_is(value.isDouble());
    case TypeKind::ComplexType:
      if (converts && value.isDouble()) return IValue(c10::complex<double>(value.toDouble()));
      if (converts && value.isInt()) {
        return IValue(c10::complex<double>(static_cast<double>(value.toInt())));
      }
      return as_it_is(value.isComplexDouble());
    case TypeKind::BoolType:
      return as_it_is(value.isBool());
    case TypeKind::StringType:
      return as_it_is(value.isString());
    case TypeKind::DeviceObjType:
      if (!value.isString()) return std::nullopt;
      try {
        return IValue(c10::Device(value.toStringRef()));
      } catch (const c10::Error&) {
        return std::nullopt;
      }
    case TypeKind::ListType:
      return take_list(value, wanted, converts);
    default:  // until a recording succeeds, the random number generator stays in recording mode
      return std::nullopt;
  }
}

std::optional<IValue> take(const IValue& value, const Argument& argument, bool converts) {
  Wanted wanted{*argument.type(), *argument.real_type(), std::nullopt};
  if (argument.N()) wanted.length = *argument.N();
  return take(value, wanted, converts);
}

// The arguments of a call by position, and those by name.
class Given {
 public:
  Given(const std::vector<IValue>& values, bool has_keywords) : by_position_(values) {
    if (!has_keywords) return;
    by_position_ = by_position_.slice(0, values.size() - 1);
    for (const auto& entry : values.back().toGenericDict())
      by_name_.emplace(entry.key().toStringRef(), entry.value());
  }

  [[nodiscard]] std::size_t by_position() const noexcept { return by_position_.size(); }
  [[nodiscard]] std::size_t by_name() const noexcept { return by_name_.size(); }
  /// The value for the argument at `index`; null if there is none.
  [[nodiscard]] const IValue* find(std::size_t index, const std::string& name) const {
    if (index < by_position_.size()) return &by_position_[index];
    const auto at = by_name_.find(name);
    return at != by_name_.end() ? &at->second : nullptr;
  }

 private:
  c10::ArrayRef<IValue> by_position_;
  std::map<std::string, IValue> by_name_{};
};

bool takes_by_position(const FunctionSchema& schema, std::size_t count, bool keywords) {
  const auto& arguments = schema.arguments();
  if (schema.is_vararg() || count > arguments.size()) return false;
  return keywords || std::none_of(arguments.begin(), arguments.begin() + static_cast<long>(count),
                                  [](const Argument& each) { return each.kwarg_only(); });
}

std::optional<std::vector<IValue>> fill(const FunctionSchema& schema, const Given& given,
                                        const Leniency& leniency) {
  if (!takes_by_position(schema, given.by_position(), leniency.keywords)) return std::nullopt;
  std::vector<IValue> stack;
  stack.reserve(schema.arguments().size());
  std::size_t used = 0;
  for (const Argument& argument : schema.arguments()) {
    const IValue* const value = given.find(stack.size(), argument.name());
    if (value == nullptr) {
      if (!argument.default_value()) return std::nullopt;
      stack.push_back(*argument.default_value());
      continue;
    }
    ++used;
    auto taken = take(*value, argument, leniency.converts);
    if (!taken) return std::nullopt;
    stack.push_back(*std::move(taken));
  }
  if (used != given.by_position() + given.by_name()) return std::nullopt;
  return stack;
}

bool may_take(const FunctionSchema& schema, const ParsedSignature& signature) {
  const auto& fields = signature.arguments.fields();
  const std::size_t count = fields.size() - (signature.has_keywords ? 1 : 0);
  if (!takes_by_position(schema, count, true)) return false;
  const auto& arguments = schema.arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i >= count) {
      if (!signature.has_keywords && !arguments[i].default_value()) return false;
      continue;
    }
    const auto samples = fields[i].type->samples();
    const auto fits = [&](const IValue& sample) {
      return take(sample, arguments[i], true).has_value();
    };
    if (samples && std::none_of(samples->begin(), samples->end(), fits)) return false;
  }
  return true;
}

}  // namespace

std::optional<OperatorOverloads::Choice> OperatorOverloads::choose(
    const std::vector<IValue>& arguments, bool has_keywords) const {
  const Given given(arguments, has_keywords);
  for (const Leniency& leniency : kLeniencies) {
    for (const c10::OperatorHandle& handle : handles_) {
      if (auto stack = fill(handle.schema(), given, leniency)) {
        return Choice{&handle, *std::move(stack)};
      }
    }
  }
  return std::nullopt;
}

OperatorOverloads OperatorOverloads::called_as(const ParsedSignature& signature) const {
  Handles fitting;
  for (const c10::OperatorHandle& handle : handles_) {
    const FunctionSchema& schema = handle.schema();
    std::vector<c10::TypePtr> results;
    for (const Argument& result : schema.returns())
      results.push_back(result.type());
    if (!schema.is_varret() && may_take(schema, signature) && signature.holds_results(results)) {
      fitting.push_back(handle);
    }
  }
  return OperatorOverloads(std::move(fitting));
}

std::string OperatorOverloads::schemas() const {
  constexpr std::size_t kMost = 12;
  std::ostringstream text;
  for (std::size_t i = 0; i < std::min(handles_.size(), kMost); ++i)
    text << "\n  " << handles_[i].schema();
  if (handles_.size() > kMost) text << "\n  and " << handles_.size() - kMost << " more";
  return text.str();
}

std::string OperatorOverloads::unknown_keyword(const std::vector<IValue>& values) const {
  for (const auto& entry : values.back().toGenericDict()) {
    const std::string& name = entry.key().toStringRef();
    const bool is_known = std::any_of(handles_.begin(), handles_.end(), [&](const auto& handle) {
      return handle.schema().argumentIndexWithName(name).has_value();
    });
    if (!is_known) return name;
  }
  return {};
}

std::string describe_values(const std::vector<IValue>& values, bool has_keywords) {
  std::string text;
  const auto add = [&](const std::string& name, const IValue& value) {
    text += (text.empty() ? "" : ", ") + name + value.tagKind();
    if (value.isTensor()) text += " (" + describe_tensor(value.toTensor()) + ")";
    if (value.isInt()) text += " " + std::to_string(value.toInt());
  };
  for (std::size_t i = 0; i + (has_keywords ? 1 : 0) < values.size(); ++i)
    add("", values[i]);
  if (has_keywords) {
    for (const auto& entry : values.back().toGenericDict())
      add(entry.key().toStringRef() + "=", entry.value());
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace batchrpc::detail
