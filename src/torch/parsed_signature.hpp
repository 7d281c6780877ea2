#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/wire/codec.hpp"
#include "torch/runtime_encoding.hpp"

namespace batchrpc::detail {

/// A function's signature, parsed from its text.
struct ParsedSignature {
  /// Throws BadSignature if the text is not a signature, or has types that are not in the table.
  [[nodiscard]] static ParsedSignature parse(std::string_view text);

  /// Writes results as the caller expects them: one; several as a struct, a list of tensors or an
  /// ivalue (a tuple); or none.
  void write_results(Encoder& encoder, std::size_t pointer, std::vector<c10::IValue> results) const;
  /// Whether results of these types can be written.
  [[nodiscard]] bool holds_results(const std::vector<c10::TypePtr>& types) const;

  RuntimeStruct arguments;
  bool has_keywords = false;  ///< the last argument is a Keywords
  std::string result;         ///< its text
  /// The result, or its members if it is a struct; nothing if it is void.
  RuntimeStruct results;
  bool is_struct = false;
};

/// The longest signature text that is parsed.
inline constexpr std::size_t kMaxParsedSignature = 1024;

}  // namespace batchrpc::detail
