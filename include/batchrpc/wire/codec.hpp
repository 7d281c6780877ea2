#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/wire/choices.hpp"
#include "batchrpc/wire/codable.hpp"
#include "batchrpc/wire/decoder.hpp"
#include "batchrpc/wire/encoder.hpp"
#include "batchrpc/wire/lists.hpp"
#include "batchrpc/wire/maps.hpp"
#include "batchrpc/wire/scalars.hpp"
#include "batchrpc/wire/strings.hpp"
#include "batchrpc/wire/structs.hpp"

namespace batchrpc {

/// Appends a Cap'n Proto struct with fields `arg0`, `arg1`, … and sets the pointer at
/// `words()[pointer_word]` to it. Throws InvalidArgument if the message becomes too large, and any
/// exception of user codecs.
template <class... Args>
void encode_struct(Encoder& encoder, std::size_t pointer_word, const Args&... args) {
  (detail::require_encodable<Args>(), ...);
  if constexpr ((Encodable<Args> && ...)) {
    using Fields = detail::Fields<Args...>;
    Fields::fill(encoder, encoder.add_struct(pointer_word, Fields::kSize), args...);
  }
}

/// Reads the struct behind `pointer_word` by Cap'n Proto's rules of evolution: fields that an older
/// sender lacks are zero or empty, and additional fields are ignored. Throws BadMessage, and any
/// exception of user codecs. Views among the values are valid as long as the decoder's segment and
/// payloads.
template <class... Args>
std::tuple<Args...> decode_struct(Decoder& decoder, std::size_t pointer_word) {
  static_assert((!std::is_reference_v<Args> && ...) && (!std::is_const_v<Args> && ...),
                "batchrpc: decode_struct() needs types without reference and const");
  (detail::require_codable<Args>(), ...);
  if constexpr ((Codable<Args> && ...)) {
    return detail::Builtin<std::tuple<Args...>>::read(decoder, decoder.pointer(pointer_word));
  }
}

}  // namespace batchrpc
