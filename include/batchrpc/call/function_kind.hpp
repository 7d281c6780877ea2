#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "batchrpc/wire/decoder.hpp"

namespace batchrpc::detail {

/// The key of a call's order. Calls of one key that one peer sends start in the order in which it
/// has sent them, however large they are.
using OrderingKey = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

/// Functions of a layer above, whose names begin alike. It says how people know these functions, in
/// which order their calls start, and what errors say about them. Its texts live for ever.
struct FunctionKind {
  std::string_view prefix;   ///< the beginning of the names
  std::string_view shown{};  ///< the name of all of them for people; empty: each has its own
  /// A parameter that the layer puts before the program's in a signature, and its number.
  /// @{
  std::string_view own_parameter{};
  std::size_t own_parameters = 0;
  /// @}
  /// Reads the key from a call's arguments. Throws BadMessage. Null: calls start in any order.
  /// The node uses it for signatures that begin with `own_parameter`.
  std::optional<OrderingKey> (*ordering_key)(Decoder& arguments) = nullptr;

  // Parts of the sentences of errors:

  std::string_view noun = "function";  ///< "no `noun` 'name' is exposed"
  std::string_view described{};        ///< "`described`'name' has the signature"
  std::string_view if_missing = "expose it there before you call it";
  /// Whether errors suggest similar names in place of `if_missing`.
  bool suggests = true;
  std::string_view if_signature_differs = "build caller and callee from the same declaration";
  /// "'name' is exposed `used_as`", for callers that call it as an ordinary function. Empty: the
  /// error does not say so.
  std::string_view used_as{};
  /// "'name' is exposed `is_ordinary`", for callers that call an ordinary function as one of this
  /// kind.
  std::string_view is_ordinary{};
  /// Returns the end of the error of a function that is missing. Null: there is none.
  std::string (*hint)(std::string_view shown) = nullptr;
  /// Returns the part of a name that a suggestion must share with it. Null: the whole name.
  std::string_view (*stem)(std::string_view name) = nullptr;
};

}  // namespace batchrpc::detail
