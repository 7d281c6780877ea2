#pragma once

#include <c10/core/ScalarType.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "torch/tensor_elements.hpp"

namespace batchrpc::detail {

/// An element type on the wire and in this LibTorch.
struct TensorType {
  std::string_view name;
  std::uint8_t bytes = 0;  ///< size of an element
  /// This LibTorch's type; Undefined if it has none.
  c10::ScalarType scalar = c10::ScalarType::Undefined;
};

// A type that only some LibTorch 2 have, if this one has it.
#define BATCHRPC_TYPE_IF_ANY(NAME)       \
  ([]<class S>(S none) {                 \
    if constexpr (requires { S::NAME; }) \
      return S::NAME;                    \
    else                                 \
      return none;                       \
  }(c10::ScalarType::Undefined))

/// LibTorch's types by their numbers on the wire.
inline constexpr std::array<c10::ScalarType, kTensorElements.size()> kTensorScalars{
    c10::ScalarType::Undefined,
    c10::ScalarType::Bool,
    c10::ScalarType::Byte,
    c10::ScalarType::Char,
    c10::ScalarType::Short,
    c10::ScalarType::Int,
    c10::ScalarType::Long,
    c10::ScalarType::Half,
    c10::ScalarType::BFloat16,
    c10::ScalarType::Float,
    c10::ScalarType::Double,
    c10::ScalarType::ComplexHalf,
    c10::ScalarType::ComplexFloat,
    c10::ScalarType::ComplexDouble,
    BATCHRPC_TYPE_IF_ANY(UInt16),
    BATCHRPC_TYPE_IF_ANY(UInt32),
    BATCHRPC_TYPE_IF_ANY(UInt64),
    BATCHRPC_TYPE_IF_ANY(Float8_e5m2),
    BATCHRPC_TYPE_IF_ANY(Float8_e4m3fn),
    BATCHRPC_TYPE_IF_ANY(Float8_e5m2fnuz),
    BATCHRPC_TYPE_IF_ANY(Float8_e4m3fnuz),
    BATCHRPC_TYPE_IF_ANY(Float8_e8m0fnu),
};
#undef BATCHRPC_TYPE_IF_ANY

inline constexpr auto kTensorTypes = [] {
  std::array<TensorType, kTensorElements.size()> types;
  for (std::size_t i = 0; i < types.size(); ++i)
    types[i] = {kTensorElements[i].name, kTensorElements[i].bytes, kTensorScalars[i]};
  return types;
}();

/// The number on the wire of each of LibTorch's types; zero if it has none.
inline constexpr auto kTensorTypeNumbers = [] {
  std::array<std::uint8_t, static_cast<std::size_t>(c10::ScalarType::NumOptions)> numbers{};
  for (std::size_t i = 1; i < kTensorTypes.size(); ++i) {
    const auto scalar = static_cast<std::size_t>(kTensorTypes[i].scalar);
    if (kTensorTypes[i].scalar != c10::ScalarType::Undefined) {
      numbers[scalar] = static_cast<std::uint8_t>(i);
    }
  }
  return numbers;
}();

[[nodiscard]] constexpr std::uint8_t tensor_type_number(c10::ScalarType scalar) noexcept {
  return kTensorTypeNumbers[static_cast<std::size_t>(scalar)];
}

}  // namespace batchrpc::detail
