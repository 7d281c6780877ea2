#include "batchrpc/env/array_spec.hpp"

#include <algorithm>

#include "batchrpc/base/error.hpp"

namespace batchrpc {

namespace {
constexpr std::size_t kMostElements = std::size_t{1} << 40;
}

std::size_t ArraySpec::elements() const {
  if (std::ranges::any_of(shape, [](std::int64_t size) { return size < 0; })) {
    throw InvalidArgument("an array has a negative size: " + to_string(*this));
  }
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::size_t count = 1;
  for (const std::int64_t size : shape) {
    if (static_cast<std::uint64_t>(size) > kMostElements / count) {
      throw InvalidArgument("an array has more than 2^40 elements: " + to_string(*this));
    }
    count *= static_cast<std::size_t>(size);
  }
  return count;
}

std::size_t ArraySpec::bytes() const { return elements() * size_in_bytes(type); }

std::size_t size_in_bytes(ElementType type) noexcept {
  switch (type) {
    case ElementType::boolean:
    case ElementType::uint8:
      return 1;
    case ElementType::int32:
    case ElementType::float32:
      return 4;
    case ElementType::int64:
    case ElementType::float64:
      return 8;
  }
  return 1;
}

std::string to_string(ElementType type) {
  switch (type) {
    case ElementType::boolean:
      return "bool";
    case ElementType::uint8:
      return "uint8";
    case ElementType::int32:
      return "int32";
    case ElementType::int64:
      return "int64";
    case ElementType::float32:
      return "float32";
    case ElementType::float64:
      return "float64";
  }
  return "elements of type " + std::to_string(static_cast<int>(type));
}

std::string to_string(const ArraySpec& spec) {
  std::string text = to_string(spec.type) + " [";
  for (std::size_t i = 0; i < spec.shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(spec.shape[i]);
  }
  return text + "]";
}

}  // namespace batchrpc
