#pragma once

#include <ATen/core/ivalue.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/torch/tensor.hpp"
#include "batchrpc/wire/codec.hpp"

namespace batchrpc {
namespace detail {

/// How deep lists, tuples and dicts may be nested.
inline constexpr unsigned kMaxIValueNesting = 16;

/// The TorchScript type of the elements of a list, or of the keys or values of a dict. The numbers
/// never change.
enum class ElementKind : std::uint8_t {
  any = 0,
  none = 1,
  boolean = 2,
  integer = 3,
  floating = 4,
  complex = 5,
  number = 6,
  string = 7,
  tensor = 8,
  list = 9,       ///< list of parts[0]
  optional = 10,  ///< parts[0], or None
  tuple = 11,     ///< of the types in parts
  dict = 12,      ///< keys: parts[0], values: parts[1]
};
struct ElementType {
  ElementKind kind = ElementKind::any;
  std::vector<ElementType> parts{};
};

struct IValueComplex {
  double real = 0;
  double imaginary = 0;
};
struct IValueList {
  ElementType element{};
  std::vector<c10::IValue> values{};
};
struct IValueTuple {
  std::vector<c10::IValue> values{};
};
struct IValueDict {
  ElementType key{};
  ElementType value{};
  std::vector<std::pair<c10::IValue, c10::IValue>> entries{};
};

}  // namespace detail

/// Encodes TorchScript values as arguments and results: None, bool, int, float, complex, str,
/// Tensor (see Codec<at::Tensor>), and lists, tuples and dicts of them, at most 16 deep. Lists and
/// dicts keep the types of their elements, even if empty. Signature: `ivalue`.
///
/// Other values (objects, futures, devices, functions, named tuples, dicts with tensors as keys)
/// are refused when sent, with an InvalidArgument that names them. A message whose elements do not
/// have the type that it claims is a BadMessage.
///
/// Lists and dicts arrive as new objects: two references to one list become two lists. No other
/// thread may change them during the call.
template <>
struct Codec<c10::IValue> {
  using Wire = std::variant<std::monostate, bool, std::int64_t, double, std::string, at::Tensor,
                            detail::IValueComplex, std::vector<bool>, std::vector<std::int64_t>,
                            std::vector<double>, std::vector<at::Tensor>, detail::IValueList,
                            detail::IValueTuple, detail::IValueDict>;
  static constexpr std::string_view name = "ivalue";

  BATCHRPC_EXPORT static Wire encode(const c10::IValue& value);
  BATCHRPC_EXPORT static c10::IValue decode(Wire&& wire);
};

}  // namespace batchrpc
