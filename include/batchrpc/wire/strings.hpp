#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/wire/codable.hpp"

/// Encodes text and bytes.
namespace batchrpc::detail {

/// Text may contain any bytes, even NULs. Cap'n Proto's tools expect UTF-8.
template <class T>
struct TextEncoding : EncodingDefaults {
  using Parts = Types<>;
  static constexpr Slot kSlot = Slot::pointer;

  static void write(Encoder& encoder, std::size_t pointer, std::string_view value) {
    if (!value.empty()) encoder.add_text(pointer, value);
  }
  static T read(Decoder& decoder, PointerRef pointer) { return T(decoder.text(pointer)); }

  template <class Writer>
  static constexpr void sign(Writer& writer) {
    writer.text("str");
  }
};

template <class Traits, class Allocator>
struct Builtin<std::basic_string<char, Traits, Allocator>>
    : TextEncoding<std::basic_string<char, Traits, Allocator>> {};

/// A received view refers to the message and is valid during the handler's call.
template <>
struct Builtin<std::string_view> : TextEncoding<std::string_view> {};

template <>
struct Builtin<const char*> : TextEncoding<const char*> {
  static constexpr bool kDecodable = false;
};
template <>
struct Builtin<char*> : Builtin<const char*> {};
/// Encodes literals up to the first NUL.
template <std::size_t N>
struct Builtin<char[N]> : Builtin<const char*> {
  static void write(Encoder& encoder, std::size_t pointer, const char (&value)[N]) {
    const std::string_view all(value, N);
    Builtin<const char*>::write(encoder, pointer, all.substr(0, all.find('\0')));
  }
};
template <std::size_t N>
struct Builtin<const char[N]> : Builtin<char[N]> {};

/// Up to this size bytes are part of the message; larger ones are payloads.
inline constexpr std::size_t kInlineBytes = 16 * 1024;

/// Bytes are a struct:
///     struct Bytes {
///       union { inline @0 :Data; payload @1 :UInt32; }
///       size @2 :UInt64;
///     }
/// in which `payload` is the index of a payload.
struct BytesEncodingBase : EncodingDefaults {
  using Parts = Types<>;
  static constexpr Slot kSlot = Slot::pointer;
  static constexpr bool kStruct = true;
  static constexpr StructSize kSize{2, 1};

  template <class Writer>
  static constexpr void sign(Writer& writer) {
    writer.text("bytes");
  }

 protected:
  /// Received bytes: in the message, or a payload.
  struct Received {
    std::span<const std::byte> bytes;
    const Bytes* payload = nullptr;
  };
  BATCHRPC_EXPORT static void fill_inline(Encoder& encoder, std::size_t place,
                                          std::span<const std::byte> bytes);
  BATCHRPC_EXPORT static void fill_payload(Encoder& encoder, std::size_t place, Bytes bytes);
  BATCHRPC_EXPORT static Received receive(Decoder& decoder, const StructView& view);
};

template <class Derived, class T>
struct BytesEncoding : BytesEncodingBase {
  static void write(Encoder& encoder, std::size_t pointer, const T& value) {
    if (value.size() != 0) Derived::fill(encoder, encoder.add_struct(pointer, kSize), value);
  }
  static T read(Decoder& decoder, PointerRef pointer) {
    Word room[kSize.data];
    return Derived::take(decoder, decoder.structure(pointer, kSize, room));
  }
};

/// The cost of a Bytes besides its bytes: the owner, and alignment.
inline constexpr std::size_t kBytesWords = 16;

/// Large values are sent from their own memory. Received values share the receive buffer.
template <>
struct Builtin<Bytes> : BytesEncoding<Builtin<Bytes>, Bytes> {
  static void fill(Encoder& encoder, std::size_t place, const Bytes& value) {
    if (value.size() <= kInlineBytes) {
      fill_inline(encoder, place, value.span());
    } else {
      fill_payload(encoder, place, value);
    }
  }
  static Bytes take(Decoder& decoder, const StructView& view) {
    const Received received = receive(decoder, view);
    if (received.payload != nullptr) return *received.payload;
    decoder.charge(kBytesWords);
    return Bytes::copy(received.bytes);
  }
};

/// Large values are sent from their own memory, which must not change until the call has completed.
/// A received view refers to the message or payload and is valid during the handler's call.
template <>
struct Builtin<std::span<const std::byte>>
    : BytesEncoding<Builtin<std::span<const std::byte>>, std::span<const std::byte>> {
  static void fill(Encoder& encoder, std::size_t place, std::span<const std::byte> value) {
    if (value.size() <= kInlineBytes) {
      fill_inline(encoder, place, value);
    } else {
      fill_payload(encoder, place, Bytes(nullptr, value));
    }
  }
  static std::span<const std::byte> take(Decoder& decoder, const StructView& view) {
    const Received received = receive(decoder, view);
    return received.payload != nullptr ? received.payload->span() : received.bytes;
  }
};

/// Sent like a span of constant bytes; cannot be received.
template <>
struct Builtin<std::span<std::byte>> : Builtin<std::span<const std::byte>> {
  static constexpr bool kDecodable = false;
};

/// Copied on both sides.
template <class Allocator>
struct Builtin<std::vector<std::byte, Allocator>>
    : BytesEncoding<Builtin<std::vector<std::byte, Allocator>>, std::vector<std::byte, Allocator>> {
  using Vector = std::vector<std::byte, Allocator>;
  static void fill(Encoder& encoder, std::size_t place, const Vector& value) {
    if (value.size() <= kInlineBytes) {
      BytesEncodingBase::fill_inline(encoder, place, value);
    } else {
      BytesEncodingBase::fill_payload(encoder, place, Bytes::copy(value));
    }
  }
  static Vector take(Decoder& decoder, const StructView& view) {
    const auto received = BytesEncodingBase::receive(decoder, view);
    std::span<const std::byte> bytes = received.bytes;
    if (received.payload != nullptr) {
      bytes = received.payload->span();
      decoder.charge_payload(bytes.size());
    }
    return Vector(bytes.begin(), bytes.end());
  }
};

}  // namespace batchrpc::detail
