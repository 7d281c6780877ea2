#include "torch/runtime_encoding.hpp"

#include <ATen/ATen.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/torch/ivalue.hpp"
#include "batchrpc/torch/operators.hpp"
#include "batchrpc/torch/tensor.hpp"
#include "batchrpc/wire/signature.hpp"

namespace batchrpc::detail {
namespace {

using c10::IValue;
using c10::TypeKind;

[[noreturn]] void refuse_value(const IValue& value, std::string_view wanted) {
  throw InvalidArgument("the result is " + value.tagKind() + ", but the caller expects " +
                        std::string(wanted));
}

// Not with braces, because clang 14 takes a number for the vector's size.
std::vector<IValue> just(IValue value) { return std::vector<IValue>(1, std::move(value)); }

// The table's entry for T.
template <class T>
struct ValueOf;

template <>
struct ValueOf<at::Tensor> {
  static c10::TypePtr type() { return c10::TensorType::get(); }
  static IValue from(at::Tensor&& value) {
    return value.defined() ? IValue(std::move(value)) : IValue();
  }
  static at::Tensor to(const IValue& value) {
    if (value.isNone()) return {};
    if (!value.isTensor()) refuse_value(value, "a tensor");
    return value.toTensor();
  }
  static bool holds(const c10::Type& type) {
    if (const auto* option = type.castRaw<c10::OptionalType>()) {
      return holds(*option->getElementType());
    }
    return type.kind() == TypeKind::TensorType;
  }
  static std::optional<std::vector<IValue>> samples() {
    return std::vector<IValue>{IValue(at::empty({0})), IValue()};
  }
};

template <>
struct ValueOf<bool> {
  static c10::TypePtr type() { return c10::BoolType::get(); }
  static IValue from(bool value) { return value; }
  static bool to(const IValue& value) {
    if (!value.isBool()) refuse_value(value, "a bool");
    return value.toBool();
  }
  static bool holds(const c10::Type& type) {
    return type.kind() == TypeKind::BoolType || type.kind() == TypeKind::NumberType;
  }
  static std::optional<std::vector<IValue>> samples() { return just(false); }
};

bool is_integer(const c10::Type& type) {
  return type.kind() == TypeKind::IntType || type.kind() == TypeKind::SymIntType ||
         type.kind() == TypeKind::NumberType;
}

template <std::integral T>
struct ValueOf<T> {
  static c10::TypePtr type() { return c10::IntType::get(); }
  static IValue from(T value) {
    if (!std::in_range<std::int64_t>(value)) {
      throw InvalidArgument("the number " + std::to_string(value) +
                            " is too large for an operator, which takes signed 64-bit integers");
    }
    return static_cast<std::int64_t>(value);
  }
  static T to(const IValue& value) {
    if (!value.isInt()) refuse_value(value, "an integer");
    if (!std::in_range<T>(value.toInt())) {
      throw InvalidArgument("the result is " + std::to_string(value.toInt()) +
                            ", which does not fit the caller's type");
    }
    return static_cast<T>(value.toInt());
  }
  static bool holds(const c10::Type& type) { return is_integer(type); }
  static std::optional<std::vector<IValue>> samples() { return just(std::int64_t{0}); }
};

template <std::floating_point T>
struct ValueOf<T> {
  static c10::TypePtr type() { return c10::FloatType::get(); }
  static IValue from(T value) { return static_cast<double>(value); }
  static T to(const IValue& value) {
    if (value.isInt()) return static_cast<T>(value.toInt());
    if (!value.isDouble()) refuse_value(value, "a floating-point number");
    return static_cast<T>(value.toDouble());
  }
  static bool holds(const c10::Type& type) {
    return type.kind() == TypeKind::FloatType || type.kind() == TypeKind::SymFloatType ||
           is_integer(type);
  }
  static std::optional<std::vector<IValue>> samples() { return just(0.0); }
};

template <>
struct ValueOf<std::string> {
  static c10::TypePtr type() { return c10::StringType::get(); }
  static IValue from(std::string&& value) { return std::move(value); }
  static std::string to(const IValue& value) {
    if (!value.isString()) refuse_value(value, "text");
    return value.toStringRef();
  }
  static bool holds(const c10::Type& type) { return type.kind() == TypeKind::StringType; }
  static std::optional<std::vector<IValue>> samples() {
    return just("cpu");  // a text may also be a device
  }
};

template <>
struct ValueOf<IValue> {
  static c10::TypePtr type() { return c10::AnyType::get(); }
  static IValue from(IValue&& value) {
    return value.isTensor() && !value.toTensor().defined() ? IValue() : std::move(value);
  }
  static IValue to(const IValue& value) { return value; }
  static bool holds(const c10::Type& /*type*/) { return true; }
  static std::optional<std::vector<IValue>> samples() { return std::nullopt; }
};

template <class T>
struct ValueOf<std::optional<T>> {
  static c10::TypePtr type() { return c10::OptionalType::create(ValueOf<T>::type()); }
  static IValue from(std::optional<T>&& value) {
    return value ? ValueOf<T>::from(*std::move(value)) : IValue();
  }
  static std::optional<T> to(const IValue& value) {
    if (value.isNone()) return std::nullopt;
    return ValueOf<T>::to(value);
  }
  static bool holds(const c10::Type& type) {
    const auto* const option = type.castRaw<c10::OptionalType>();
    return ValueOf<T>::holds(option != nullptr ? *option->getElementType() : type);
  }
  static std::optional<std::vector<IValue>> samples() {
    auto samples = ValueOf<T>::samples();
    if (samples) samples->emplace_back();
    return samples;
  }
};

template <class T>
struct ValueOf<std::vector<T>> {
  static c10::TypePtr type() { return c10::ListType::create(ValueOf<T>::type()); }
  static IValue from(std::vector<T>&& values) {
    std::vector<IValue> converted;
    converted.reserve(values.size());
    for (auto&& value : values)
      converted.push_back(ValueOf<T>::from(static_cast<T>(std::move(value))));
    return list_of(ValueOf<T>::type(), std::move(converted));
  }
  static std::vector<T> to(const IValue& value) {
    if (!value.isList()) refuse_value(value, "a list");
    std::vector<T> result;
    for (const IValue& element : value.toListRef())
      result.push_back(ValueOf<T>::to(element));
    return result;
  }
  static bool holds(const c10::Type& type) {
    const auto* const list = type.castRaw<c10::ListType>();
    return list != nullptr && ValueOf<T>::holds(*list->getElementType());
  }
  static std::optional<std::vector<IValue>> samples() {
    auto elements = ValueOf<T>::samples();
    if (!elements) return std::nullopt;
    std::vector<IValue> samples;
    for (const IValue& element : *elements)
      samples.push_back(list_of(ValueOf<T>::type(), {element}));
    return samples;
  }
};

// Arguments by name. No result is one.
template <>
struct ValueOf<Keywords> {
  static IValue from(Keywords&& values) {
    c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
    for (auto& [name, value] : values)
      dict.insert(name, ValueOf<IValue>::from(std::move(value)));
    return dict;
  }
  static Keywords to(const IValue& value) { refuse_value(value, "keyword arguments"); }
  static bool holds(const c10::Type& /*type*/) { return false; }
  static std::optional<std::vector<IValue>> samples() { return std::nullopt; }
};

template <class T>
IValue read_value(Decoder& decoder, const StructView& view, std::uint32_t offset) {
  return ValueOf<T>::from(read_field<T>(decoder, view, offset));
}
template <class T>
void write_value(Encoder& encoder, std::size_t place, std::size_t data_words, std::uint32_t offset,
                 const IValue& value) {
  write_field<T>(encoder, place, data_words, offset, ValueOf<T>::to(value));
}

using Table = std::map<std::string_view, RuntimeEncoding>;

template <class T>
void add(Table& table) {
  constexpr std::string_view kBefore = "void(";
  std::string_view text = signature<void, T>();
  text = text.substr(kBefore.size(), text.size() - kBefore.size() - 1);
  table[text] = {Encoding<T>::kSlot, &read_value<T>,       &write_value<T>,
                 &ValueOf<T>::holds, &ValueOf<T>::samples, std::is_same_v<T, Keywords>};
}

template <class... T>
Table table_of() {
  Table table;
  (add<T>(table), ...);
  (add<std::optional<T>>(table), ...);
  (add<std::vector<T>>(table), ...);
  (add<std::optional<std::vector<T>>>(table), ...);
  add<std::vector<std::optional<at::Tensor>>>(table);
  add<Keywords>(table);
  return table;
}

}  // namespace

IValue list_of(const c10::TypePtr& type, std::vector<IValue> values) {
  // An undefined tensor is None, which only a list of optional tensors can hold.
  const bool has_none =
      type->kind() == TypeKind::TensorType &&
      std::any_of(values.begin(), values.end(), [](const IValue& value) { return value.isNone(); });
  c10::impl::GenericList list(has_none ? c10::TypePtr(c10::OptionalType::create(type)) : type);
  list.reserve(values.size());
  for (IValue& value : values)
    list.push_back(std::move(value));
  return list;
}

const RuntimeEncoding* find_encoding(std::string_view text) {
  static const Table table = table_of<at::Tensor, bool, std::int8_t, std::int16_t, std::int32_t,
                                      std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
                                      std::uint64_t, float, double, std::string, IValue>();
  const auto at = table.find(text);
  return at != table.end() ? &at->second : nullptr;
}

RuntimeStruct::RuntimeStruct(std::vector<Field> fields) : fields_(std::move(fields)) {
  std::vector<Slot> slots;
  for (const Field& field : fields_)
    slots.push_back(field.type->slot);
  std::vector<std::uint32_t> offsets(slots.size());
  size_ = place_fields(slots.data(), offsets.data(), slots.size());
  for (std::size_t i = 0; i < fields_.size(); ++i)
    fields_[i].offset = offsets[i];
}

std::vector<c10::IValue> RuntimeStruct::read(Decoder& decoder, PointerRef pointer) const {
  std::array<Word, kMostFields> room{};
  const StructView view = decoder.structure(pointer, size_, room.data());
  const Decoder::Nesting nesting(decoder);
  std::vector<IValue> values;
  values.reserve(fields_.size());
  for (const Field& field : fields_) {
    values.push_back(field.type->read(decoder, view, field.offset));
    if (field.length && values.back().toListRef().size() != *field.length) {
      Decoder::fail("an array of another length");
    }
  }
  return values;
}

void RuntimeStruct::write(Encoder& encoder, std::size_t pointer,
                          c10::ArrayRef<c10::IValue> values) const {
  const std::size_t place = encoder.add_struct(pointer, size_);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const Field& field = fields_[i];
    if (field.length && values[i].isList() && values[i].toListRef().size() != *field.length) {
      throw InvalidArgument(
          "the result is a list of " + std::to_string(values[i].toListRef().size()) +
          ", but the caller expects an array of " + std::to_string(*field.length));
    }
    field.type->write(encoder, place, size_.data, field.offset, values[i]);
  }
}

}  // namespace batchrpc::detail
