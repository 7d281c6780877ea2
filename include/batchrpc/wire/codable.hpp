#pragma once

#include <type_traits>
#include <utility>

#include "batchrpc/wire/decoder.hpp"
#include "batchrpc/wire/encoder.hpp"

namespace batchrpc {

/// The extension point for your own types. Specialise it directly after the type, before any code
/// encodes one. `Wire` is the type in whose form your type travels.
///
///     template <>
///     struct batchrpc::Codec<Temperature> {
///       using Wire = double;                                  // any codable type
///       static Wire encode(const Temperature& t) { return t.celsius(); }
///       static Temperature decode(Wire&& wire) { return Temperature(wire); }
///       static constexpr std::string_view name = "Temperature";  // optional
///     };
///
/// `encode` may take the Encoder as its second parameter, to add payloads. `decode` may take the
/// Decoder, to read them. `Wire` may be a view of the argument of `encode`. `decode` rejects a
/// value by throwing BadMessage.
///
/// Without a `name`, the type's signature is that of `Wire`, so the two are interchangeable. With a
/// `name` (letters, digits, `_`, `.`) the signature is the name. Then no other type can take its
/// place, but `Wire` may later gain members at its end.
template <class T>
struct Codec;

namespace detail {

template <class... T>
struct Types {};

/// How the library itself encodes T. A specialisation has:
/// kSlot: the space that a field of the type takes;  Parts: the types that it consists of;
/// and, depending on kSlot:
///   none:     make(decoder)
///   pointer:  write(encoder, pointer, value), read(decoder, pointer);
///             those that are structs (kStruct) also kSize, fill(encoder, place, value),
///             take(decoder, view), for lists
///   others:   Raw, pack(encoder, value), unpack(decoder, raw)
///   sign(writer): writes the signature.
/// A type that can only be encoded sets kDecodable = false.
template <class T>
struct Builtin;

template <class T>
concept HasCodec = requires {
  typename Codec<T>::Wire;
};
template <class T>
concept HasBuiltin = requires {
  Builtin<T>::kSlot;
};

template <class T>
concept NotArray = !std::is_array_v<T>;

template <class T>
struct CodecEncoding;
template <class T>
struct EncodingOf {
  using type = Builtin<T>;
};
template <HasCodec T>
struct EncodingOf<T> {
  using type = CodecEncoding<T>;
};
/// How T is encoded: by the library itself, or as its codec's Wire.
template <class T>
using Encoding = typename EncodingOf<T>::type;

/// The defaults of all encodings; specialisations override them.
struct EncodingDefaults {
  static constexpr bool kDecodable = true;
  static constexpr bool kStruct = false;
  /// Whether encoding runs no user code, so that the encoder's words stay in place.
  static constexpr bool kPlain = true;
  /// Whether it counts as a level for `^n` in a signature.
  static constexpr bool kLevel = true;
};

/// Encodes a type with a Codec as the codec's Wire.
template <class T>
struct CodecEncoding : EncodingDefaults {
  using Inner = typename Codec<T>::Wire;
  using InnerEncoding = Encoding<Inner>;
  using Parts = Types<Inner>;

  static constexpr Slot kSlot = InnerEncoding::kSlot;
  static constexpr bool kStruct = InnerEncoding::kStruct;
  static constexpr bool kDecodable = InnerEncoding::kDecodable;
  static constexpr bool kPlain = false;
  static constexpr StructSize kSize = InnerEncoding::kSize;

  static decltype(auto) to_wire(Encoder& encoder, const T& value) {
    if constexpr (requires { Codec<T>::encode(value, encoder); }) {
      return Codec<T>::encode(value, encoder);
    } else {
      return Codec<T>::encode(value);
    }
  }
  static T from_wire(Decoder& decoder, Inner&& inner) {
    if constexpr (requires { Codec<T>::decode(std::move(inner), decoder); }) {
      return Codec<T>::decode(std::move(inner), decoder);
    } else {
      return Codec<T>::decode(std::move(inner));
    }
  }

  static T make(Decoder& decoder) { return from_wire(decoder, InnerEncoding::make(decoder)); }
  static auto pack(Encoder& encoder, const T& value) {
    return InnerEncoding::pack(encoder, to_wire(encoder, value));
  }
  template <class Raw>
  static T unpack(Decoder& decoder, Raw raw) {
    return from_wire(decoder, InnerEncoding::unpack(decoder, raw));
  }
  static void write(Encoder& encoder, std::size_t pointer, const T& value) {
    InnerEncoding::write(encoder, pointer, to_wire(encoder, value));
  }
  static T read(Decoder& decoder, PointerRef pointer) {
    return from_wire(decoder, InnerEncoding::read(decoder, pointer));
  }
  static void fill(Encoder& encoder, std::size_t place, const T& value) {
    InnerEncoding::fill(encoder, place, to_wire(encoder, value));
  }
  static T take(Decoder& decoder, const StructView& view) {
    return from_wire(decoder, InnerEncoding::take(decoder, view));
  }
};

/// The stored type of a field of type T that is not a pointer.
template <class T>
struct RawOf {
  using type = typename Builtin<T>::Raw;
};
template <HasCodec T>
struct RawOf<T> : RawOf<typename Codec<T>::Wire> {};

// Whether T and all its parts can be encoded (and decoded). Recursive types contain themselves.
template <bool Decode, class T, class... Enclosing>
constexpr bool supported();

template <bool Decode, class... Enclosing, class... Part>
constexpr bool all_supported(Types<Part...>) {
  return (supported<Decode, std::remove_cv_t<Part>, Enclosing...>() && ...);
}

template <bool Decode, class T, class... Enclosing>
constexpr bool supported() {
  if constexpr ((std::is_same_v<T, Enclosing> || ...)) {
    return true;
  } else if constexpr (HasCodec<T>) {
    return supported<Decode, typename Codec<T>::Wire, T, Enclosing...>();
  } else if constexpr (HasBuiltin<T>) {
    if constexpr (Decode && !Builtin<T>::kDecodable) {
      return false;
    } else {
      return all_supported<Decode, T, Enclosing...>(typename Builtin<T>::Parts{});
    }
  } else {
    return false;
  }
}

}  // namespace detail

/// Types that can be sent as arguments. Not all of them can be parameters (`const char*`, for
/// example).
template <class T>
concept Encodable = detail::supported<false, std::remove_cvref_t<T>>();

/// Types that can be parameters and results of remote functions: they can be sent and received.
template <class T>
concept Codable = detail::supported<true, std::remove_cvref_t<T>>();

namespace detail {

template <class T>
constexpr void require_encodable() {
  static_assert(
      Encodable<T>,
      "batchrpc: this type cannot be sent. Send numbers, enums, strings, bytes, "
      "containers, pair, tuple, optional, variant, unique_ptr, chrono, or an aggregate of "
      "at most 16 of these without bases, bit-fields, unions, pointers or references; or "
      "specialise batchrpc::Codec for it, before its first use");
}
template <class T>
constexpr void require_codable() {
  static_assert(
      Codable<T>,
      "batchrpc: this type cannot be received. Use numbers, enums, strings, bytes, "
      "containers, pair, tuple, optional, variant, unique_ptr, chrono, or an aggregate of "
      "at most 16 of these without bases, bit-fields, unions, pointers or references; or "
      "specialise batchrpc::Codec for it, before its first use");
}

}  // namespace detail
}  // namespace batchrpc
