#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace batchrpc::detail {

/// An element type on the wire.
struct TensorElement {
  std::string_view name;
  std::uint8_t bytes = 0;
};

/// The types by their numbers on the wire, which never change; add new ones at the end. Zero is the
/// undefined tensor.
inline constexpr std::array kTensorElements{
    TensorElement{"undefined", 0},       TensorElement{"bool", 1},
    TensorElement{"uint8", 1},           TensorElement{"int8", 1},
    TensorElement{"int16", 2},           TensorElement{"int32", 4},
    TensorElement{"int64", 8},           TensorElement{"float16", 2},
    TensorElement{"bfloat16", 2},        TensorElement{"float32", 4},
    TensorElement{"float64", 8},         TensorElement{"complex32", 4},
    TensorElement{"complex64", 8},       TensorElement{"complex128", 16},
    TensorElement{"uint16", 2},          TensorElement{"uint32", 4},
    TensorElement{"uint64", 8},          TensorElement{"float8_e5m2", 1},
    TensorElement{"float8_e4m3fn", 1},   TensorElement{"float8_e5m2fnuz", 1},
    TensorElement{"float8_e4m3fnuz", 1}, TensorElement{"float8_e8m0fnu", 1},
};

}  // namespace batchrpc::detail
