#include "batchrpc/torch/ivalue.hpp"

#include <ATen/ATen.h>
#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <utility>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

using c10::IValue;
using detail::ElementKind;
using detail::ElementType;

[[noreturn]] void refuse(const std::string& what) {
  throw InvalidArgument("an IValue cannot be sent: " + what +
                        "; allowed are None, bool, int, float, complex, str, Tensor, and "
                        "lists, tuples and dicts of these");
}

// --- types of elements

ElementType to_wire_type(const c10::Type& type) {
  ElementType wire;
  switch (type.kind()) {
    case c10::TypeKind::AnyType:
      wire.kind = ElementKind::any;
      break;
    case c10::TypeKind::NoneType:
      wire.kind = ElementKind::none;
      break;
    case c10::TypeKind::BoolType:
      wire.kind = ElementKind::boolean;
      break;
    case c10::TypeKind::IntType:
      wire.kind = ElementKind::integer;
      break;
    case c10::TypeKind::FloatType:
      wire.kind = ElementKind::floating;
      break;
    case c10::TypeKind::ComplexType:
      wire.kind = ElementKind::complex;
      break;
    case c10::TypeKind::NumberType:
      wire.kind = ElementKind::number;
      break;
    case c10::TypeKind::StringType:
      wire.kind = ElementKind::string;
      break;
    case c10::TypeKind::TensorType:
      wire.kind = ElementKind::tensor;
      break;
    case c10::TypeKind::ListType:
      wire.kind = ElementKind::list;
      break;
    case c10::TypeKind::OptionalType:
      wire.kind = ElementKind::optional;
      break;
    case c10::TypeKind::TupleType:
      wire.kind = ElementKind::tuple;
      break;
    case c10::TypeKind::DictType:
      wire.kind = ElementKind::dict;
      break;
    default:
      refuse("it holds elements of type " + type.str());
  }
  if (wire.kind == ElementKind::tuple && type.expectRef<c10::TupleType>().schema()) {
    refuse("it holds named tuples, " + type.str());
  }
  for (const auto& part : type.containedTypes())
    wire.parts.push_back(to_wire_type(*part));
  return wire;
}

bool can_be_key(ElementKind kind) {
  return kind == ElementKind::boolean || kind == ElementKind::integer ||
         kind == ElementKind::floating || kind == ElementKind::complex ||
         kind == ElementKind::string;
}

c10::TypePtr to_type(const ElementType& wire) {
  const auto require_parts = [&](std::size_t count) {
    if (wire.parts.size() != count) Decoder::fail("a type of elements with missing parts");
  };
  switch (wire.kind) {
    case ElementKind::any:
      return c10::AnyType::get();
    case ElementKind::none:
      return c10::NoneType::get();
    case ElementKind::boolean:
      return c10::BoolType::get();
    case ElementKind::integer:
      return c10::IntType::get();
    case ElementKind::floating:
      return c10::FloatType::get();
    case ElementKind::complex:
      return c10::ComplexType::get();
    case ElementKind::number:
      return c10::NumberType::get();
    case ElementKind::string:
      return c10::StringType::get();
    case ElementKind::tensor:
      return c10::TensorType::get();
    case ElementKind::list:
      require_parts(1);
      return c10::ListType::create(to_type(wire.parts[0]));
    case ElementKind::optional:
      require_parts(1);
      return c10::OptionalType::create(to_type(wire.parts[0]));
    case ElementKind::tuple: {
      std::vector<c10::TypePtr> parts;
      for (const ElementType& part : wire.parts)
        parts.push_back(to_type(part));
      return c10::TupleType::create(std::move(parts));
    }
    case ElementKind::dict:
      require_parts(2);
      if (!can_be_key(wire.parts[0].kind))
        Decoder::fail("a dict with a key type that is not allowed");
      return c10::DictType::create(to_type(wire.parts[0]), to_type(wire.parts[1]));
  }
  Decoder::fail("elements of unknown type " + std::to_string(static_cast<unsigned>(wire.kind)));
}

bool is_of_type(const IValue& value, ElementKind kind, const c10::TypePtr& type) {
  switch (kind) {
    case ElementKind::any:
      return true;
    case ElementKind::none:
      return value.isNone();
    case ElementKind::boolean:
      return value.isBool();
    case ElementKind::integer:
      return value.isInt();
    case ElementKind::floating:
      return value.isDouble();
    case ElementKind::complex:
      return value.isComplexDouble();
    case ElementKind::number:
      return value.isInt() || value.isDouble() || value.isComplexDouble();
    case ElementKind::string:
      return value.isString();
    case ElementKind::tensor:
      return value.isTensor();
    case ElementKind::list:
    case ElementKind::optional:
    case ElementKind::tuple:
    case ElementKind::dict:
      break;
  }
  return value.type()->isSubtypeOf(*type);
}

void require_type(const IValue& value, ElementKind kind, const c10::TypePtr& type) {
  if (!is_of_type(value, kind, type)) {
    Decoder::fail("an element of type " + value.type()->str() + " in a container of " +
                  type->str());
  }
}

// --- sending

// Throws unless `value` and all in it can be sent. Called before anything is written. It also stops
// at a list that contains itself.
void require_sendable(const IValue& value, unsigned levels_left) {
  const bool nests = value.isList() || value.isTuple() || value.isGenericDict();
  if (nests && levels_left == 0) {
    refuse("its lists, tuples and dicts are nested deeper than " +
           std::to_string(detail::kMaxIValueNesting));
  }
  if (value.isIntList() || value.isDoubleList() || value.isBoolList() || value.isTensorList()) {
    return;
  }
  if (value.isList()) {
    for (const IValue& element : value.toListRef())
      require_sendable(element, levels_left - 1);
  } else if (value.isTuple()) {
    if (value.type()->expectRef<c10::TupleType>().schema()) {
      refuse("it is a named tuple, " + value.type()->str());
    }
    for (const IValue& element : value.toTupleRef().elements())
      require_sendable(element, levels_left - 1);
  } else if (value.isGenericDict()) {
    const auto dict = value.toGenericDict();
    if (!can_be_key(to_wire_type(*dict.keyType()).kind)) {
      refuse("it is a dict with keys of type " + dict.keyType()->str());
    }
    for (const auto& entry : dict)
      require_sendable(entry.value(), levels_left - 1);
  } else if (!value.isNone() && !value.isBool() && !value.isInt() && !value.isDouble() &&
             !value.isString() && !value.isTensor() && !value.isComplexDouble()) {
    refuse("it is a " + value.tagKind());
  }
}

Codec<IValue>::Wire dict_to_wire(const IValue& value) {
  const auto dict = value.toGenericDict();
  detail::IValueDict wire{to_wire_type(*dict.keyType()), to_wire_type(*dict.valueType()), {}};
  wire.entries.reserve(dict.size());
  for (const auto& entry : dict)
    wire.entries.emplace_back(entry.key(), entry.value());
  return wire;
}

std::vector<bool> bools_of(const IValue& value) {
  std::vector<bool> result;
  for (const bool element : value.toBoolList())
    result.push_back(element);
  return result;
}

// --- receiving

struct Maker {
  IValue operator()(std::monostate) const { return {}; }
  IValue operator()(bool value) const { return value; }
  IValue operator()(std::int64_t value) const { return value; }
  IValue operator()(double value) const { return value; }
  IValue operator()(std::string&& value) const { return std::move(value); }
  IValue operator()(at::Tensor&& value) const { return std::move(value); }
  IValue operator()(const detail::IValueComplex& value) const {
    return c10::complex<double>(value.real, value.imaginary);
  }
  IValue operator()(std::vector<bool>&& values) const {
    c10::List<bool> list;
    list.reserve(values.size());
    for (const bool value : values)
      list.push_back(value);
    return list;
  }
  IValue operator()(std::vector<std::int64_t>&& values) const { return std::move(values); }
  IValue operator()(std::vector<double>&& values) const { return std::move(values); }
  IValue operator()(std::vector<at::Tensor>&& values) const { return std::move(values); }

  IValue operator()(detail::IValueList&& wire) const {
    const c10::TypePtr type = to_type(wire.element);
    c10::impl::GenericList list(type);
    list.reserve(wire.values.size());
    for (IValue& value : wire.values) {
      require_type(value, wire.element.kind, type);
      list.push_back(std::move(value));
    }
    return list;
  }
  IValue operator()(detail::IValueTuple&& wire) const {
    return c10::ivalue::Tuple::create(std::move(wire.values));
  }
  IValue operator()(detail::IValueDict&& wire) const {
    if (!can_be_key(wire.key.kind)) Decoder::fail("a dict with a key type that is not allowed");
    const c10::TypePtr key_type = to_type(wire.key);
    const c10::TypePtr value_type = to_type(wire.value);
    c10::impl::GenericDict dict(key_type, value_type);
    dict.reserve(wire.entries.size());
    for (auto& [key, value] : wire.entries) {
      require_type(key, wire.key.kind, key_type);
      require_type(value, wire.value.kind, value_type);
      if (!dict.insert(std::move(key), std::move(value)).second) {
        Decoder::fail("a dict with a duplicate key");
      }
    }
    return dict;
  }
};

}  // namespace

Codec<IValue>::Wire Codec<IValue>::encode(const IValue& value) {
  require_sendable(value, detail::kMaxIValueNesting);
  if (value.isNone()) return std::monostate();
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isString()) return value.toStringRef();
  if (value.isTensor()) return value.toTensor();
  if (value.isComplexDouble()) {
    const auto number = value.toComplexDouble();
    return detail::IValueComplex{number.real(), number.imag()};
  }
  if (value.isBoolList()) return bools_of(value);
  if (value.isIntList()) return value.toIntVector();
  if (value.isDoubleList()) return value.toDoubleVector();
  if (value.isTensorList()) return value.toTensorVector();
  if (value.isGenericDict()) return dict_to_wire(value);
  if (value.isTuple()) {
    const auto& elements = value.toTupleRef().elements();
    return detail::IValueTuple{std::vector<IValue>(elements.begin(), elements.end())};
  }
  const auto elements = value.toListRef();
  return detail::IValueList{to_wire_type(*value.toList().elementType()), elements.vec()};
}

IValue Codec<IValue>::decode(Wire&& wire) { return std::visit(Maker{}, std::move(wire)); }

}  // namespace batchrpc
