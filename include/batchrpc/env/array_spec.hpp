#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// What the elements of an array are, in the machine's own form: little-endian.
enum class ElementType : std::uint8_t { boolean, uint8, int32, int64, float32, float64 };

/// Type and shape of a dense, row-major array: of one environment's observation, for example.
struct ArraySpec {
  ElementType type = ElementType::float32;  ///< of its elements
  std::vector<std::int64_t> shape{};        ///< empty: one element

  /// Zero for a shape with a size of zero; at most 2^40. Throws InvalidArgument for a negative size
  /// or more elements.
  [[nodiscard]] BATCHRPC_EXPORT std::size_t elements() const;
  /// Of all elements. Throws as elements().
  [[nodiscard]] BATCHRPC_EXPORT std::size_t bytes() const;

  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
};

/// Of one element.
[[nodiscard]] BATCHRPC_EXPORT std::size_t size_in_bytes(ElementType type) noexcept;
/// Such as "float32".
[[nodiscard]] BATCHRPC_EXPORT std::string to_string(ElementType type);
/// Such as "float32 [4]".
[[nodiscard]] BATCHRPC_EXPORT std::string to_string(const ArraySpec& spec);

}  // namespace batchrpc
