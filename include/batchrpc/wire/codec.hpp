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

/// Appends a Cap'n Proto struct with fields `arg0`, `arg1`, … to the message and lets the pointer
/// at `words()[pointer_word]` point to it. Throws InvalidArgument when the message becomes too
/// large, and what users' codecs throw.
template <class... Args>
void encode_struct(Encoder& encoder, std::size_t pointer_word, const Args&... args) {
  (detail::require_encodable<Args>(), ...);
  if constexpr ((Encodable<Args> && ...)) {
    using Fields = detail::Fields<Args...>;
    Fields::fill(encoder, encoder.add_struct(pointer_word, Fields::kSize), args...);
  }
}

/// Reads the struct behind `pointer_word`, by Cap'n Proto's rules of evolution: what is absent,
/// since the sender had fewer fields, is zero or empty; further fields are ignored. Throws
/// BadMessage, and what users' codecs throw. Views among the values live as long as the decoder's
/// segment and payloads.
template <class... Args>
std::tuple<Args...> decode_struct(Decoder& decoder, std::size_t pointer_word) {
  static_assert((!std::is_reference_v<Args> && ...) && (!std::is_const_v<Args> && ...),
                "batchrpc: what is decoded has no reference and no const at its top");
  (detail::require_codable<Args>(), ...);
  if constexpr ((Codable<Args> && ...)) {
    return detail::Builtin<std::tuple<Args...>>::read(decoder, decoder.pointer(pointer_word));
  }
}

}  // namespace batchrpc
