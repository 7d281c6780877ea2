#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// The type of an array's elements, which are in the machine's own form: little-endian.
enum class ElementType : std::uint8_t { boolean, uint8, int32, int64, float32, float64 };

/// The type and shape of a dense, row-major array, for example one environment's observation.
struct ArraySpec {
  ElementType type = ElementType::float32;  ///< the elements' type
  std::vector<std::int64_t> shape{};        ///< empty: one element

  /// The number of elements: zero if a size in the shape is zero, and at most 2^40. Throws
  /// InvalidArgument for a negative size or more elements.
  [[nodiscard]] BATCHRPC_EXPORT std::size_t elements() const;
  /// The size of all elements. Throws as elements().
  [[nodiscard]] BATCHRPC_EXPORT std::size_t bytes() const;

  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
};

/// The size of one element.
[[nodiscard]] BATCHRPC_EXPORT std::size_t size_in_bytes(ElementType type) noexcept;
/// Returns a name such as "float32".
[[nodiscard]] BATCHRPC_EXPORT std::string to_string(ElementType type);
/// Returns a text such as "float32 [4]".
[[nodiscard]] BATCHRPC_EXPORT std::string to_string(const ArraySpec& spec);

}  // namespace batchrpc
