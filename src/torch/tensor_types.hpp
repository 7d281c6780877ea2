#pragma once

#include <c10/core/ScalarType.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace batchrpc::detail {

/// A type of elements as it is on the wire.
struct TensorType {
  std::string_view name;
  std::uint8_t bytes = 0;  ///< of an element
  /// This LibTorch's own; Undefined where it has no such type.
  c10::ScalarType scalar = c10::ScalarType::Undefined;
};

// A type that came with some LibTorch 2, where there is one.
#define BATCHRPC_TYPE_IF_ANY(NAME)       \
  ([]<class S>(S none) {                 \
    if constexpr (requires { S::NAME; }) \
      return S::NAME;                    \
    else                                 \
      return none;                       \
  }(c10::ScalarType::Undefined))

/// Types by their numbers on the wire, which never change; new ones are added at the end. Zero is
/// the undefined tensor.
inline constexpr std::array kTensorTypes{
    TensorType{"undefined", 0, c10::ScalarType::Undefined},
    TensorType{"bool", 1, c10::ScalarType::Bool},
    TensorType{"uint8", 1, c10::ScalarType::Byte},
    TensorType{"int8", 1, c10::ScalarType::Char},
    TensorType{"int16", 2, c10::ScalarType::Short},
    TensorType{"int32", 4, c10::ScalarType::Int},
    TensorType{"int64", 8, c10::ScalarType::Long},
    TensorType{"float16", 2, c10::ScalarType::Half},
    TensorType{"bfloat16", 2, c10::ScalarType::BFloat16},
    TensorType{"float32", 4, c10::ScalarType::Float},
    TensorType{"float64", 8, c10::ScalarType::Double},
    TensorType{"complex32", 4, c10::ScalarType::ComplexHalf},
    TensorType{"complex64", 8, c10::ScalarType::ComplexFloat},
    TensorType{"complex128", 16, c10::ScalarType::ComplexDouble},
    TensorType{"uint16", 2, BATCHRPC_TYPE_IF_ANY(UInt16)},
    TensorType{"uint32", 4, BATCHRPC_TYPE_IF_ANY(UInt32)},
    TensorType{"uint64", 8, BATCHRPC_TYPE_IF_ANY(UInt64)},
    TensorType{"float8_e5m2", 1, BATCHRPC_TYPE_IF_ANY(Float8_e5m2)},
    TensorType{"float8_e4m3fn", 1, BATCHRPC_TYPE_IF_ANY(Float8_e4m3fn)},
    TensorType{"float8_e5m2fnuz", 1, BATCHRPC_TYPE_IF_ANY(Float8_e5m2fnuz)},
    TensorType{"float8_e4m3fnuz", 1, BATCHRPC_TYPE_IF_ANY(Float8_e4m3fnuz)},
    TensorType{"float8_e8m0fnu", 1, BATCHRPC_TYPE_IF_ANY(Float8_e8m0fnu)},
};
#undef BATCHRPC_TYPE_IF_ANY

/// The number on the wire of each of LibTorch's types; zero where it has none.
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
