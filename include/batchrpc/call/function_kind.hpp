#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "batchrpc/wire/decoder.hpp"

namespace batchrpc::detail {

/// Calls of one key that one peer sends start in the order in which it has sent them, however large
/// they are.
using OrderingKey = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

/// Functions whose names begin alike, as a layer above exposes them: how people know them, in which
/// order their calls start, and what their callers are told when there is none. Its texts live for
/// ever.
struct FunctionKind {
  std::string_view prefix;   ///< what the names begin with
  std::string_view shown{};  ///< as people know them all; empty: by their names
  /// A parameter that the layer puts before the program's, in a signature, and how many of these.
  /// @{
  std::string_view own_parameter{};
  std::size_t own_parameters = 0;
  /// @}
  /// Reads the key that a call's arguments hold. Throws BadMessage. Null: calls start in any order.
  /// Used for signatures that begin with `own_parameter`.
  std::optional<OrderingKey> (*ordering_key)(Decoder& arguments) = nullptr;

  // Of errors, each a part of a sentence:

  std::string_view noun = "function";  ///< no `noun` 'name' is exposed
  std::string_view described{};        ///< `described`'name' has the signature
  std::string_view if_missing = "expose it there before you call it";
  /// Whether names that are nearly the same are told in place of `if_missing`.
  bool suggests = true;
  std::string_view if_signature_differs = "build caller and callee from the same declaration";
  /// 'name' is exposed `used_as`: to who calls it as an ordinary function. Empty: is not told.
  std::string_view used_as{};
  /// 'name' is exposed `is_ordinary`: to who calls an ordinary function as one of this kind.
  std::string_view is_ordinary{};
  /// Ends what is told of a function that is missing; null: nothing.
  std::string (*hint)(std::string_view shown) = nullptr;
  /// The part of a name that another must have to be suggested for it; null: the whole name.
  std::string_view (*stem)(std::string_view name) = nullptr;
};

}  // namespace batchrpc::detail
