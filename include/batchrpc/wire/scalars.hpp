#pragma once

#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ratio>
#include <string_view>
#include <type_traits>
#include <variant>

#include "batchrpc/wire/codable.hpp"

/// Encodes values that lie in the data section: numbers, enums, std::byte, std::monostate,
/// durations and time points.
namespace batchrpc::detail {

template <std::size_t Bytes>
using UnsignedOf = std::conditional_t<
    Bytes == 1, std::uint8_t,
    std::conditional_t<Bytes == 2, std::uint16_t,
                       std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;

template <std::size_t Bytes>
inline constexpr Slot kSlotOf = Bytes == 1   ? Slot::bits8
                                : Bytes == 2 ? Slot::bits16
                                : Bytes == 4 ? Slot::bits32
                                             : Slot::bits64;

template <std::size_t Bytes>
inline constexpr ElementSize kElementSizeOf = Bytes == 1   ? ElementSize::byte
                                              : Bytes == 2 ? ElementSize::two_bytes
                                              : Bytes == 4 ? ElementSize::four_bytes
                                                           : ElementSize::eight_bytes;

/// Integers by size and signedness (`char` is signed on every machine), float and double.
template <class T>
concept Number = (std::integral<T> && !std::same_as<T, bool> && sizeof(T) <= 8) ||
                 std::same_as<T, float> || std::same_as<T, double>;

/// Whether T has the same form in memory and on the wire, so that lists of it can be copied as a
/// whole.
template <class T>
constexpr bool is_block_element() {
  if constexpr (HasCodec<T>) {
    return false;
  } else if constexpr (std::is_enum_v<T>) {
    return Number<std::underlying_type_t<T>>;
  } else {
    return Number<T>;
  }
}

template <Number T>
struct Builtin<T> : EncodingDefaults {
  using Parts = Types<>;
  using Raw = UnsignedOf<sizeof(T)>;
  static constexpr Slot kSlot = kSlotOf<sizeof(T)>;

  static Raw pack(Encoder&, T value) noexcept { return std::bit_cast<Raw>(value); }
  static T unpack(Decoder&, Raw raw) noexcept { return std::bit_cast<T>(raw); }

  template <class Writer>
  static constexpr void sign(Writer& writer) {
    if constexpr (std::floating_point<T>) {
      writer.text("f");
    } else {
      writer.text(std::is_signed_v<T> || std::same_as<T, char> ? "i" : "u");
    }
    writer.number(sizeof(T) * 8);
  }
};

template <>
struct Builtin<bool> : EncodingDefaults {
  using Parts = Types<>;
  using Raw = bool;
  static constexpr Slot kSlot = Slot::bit;

  static bool pack(Encoder&, bool value) noexcept { return value; }
  static bool unpack(Decoder&, bool raw) noexcept { return raw; }

  template <class Writer>
  static constexpr void sign(Writer& writer) {
    writer.text("bool");
  }
};

template <class T>
concept Enum = std::is_enum_v<T> && HasBuiltin<std::underlying_type_t<T>>;

/// Enums, including std::byte, are encoded as their underlying integer. Any of its values may
/// arrive.
template <Enum T>
struct Builtin<T> : EncodingDefaults {
  using Parts = Types<>;
  using Underlying = std::underlying_type_t<T>;
  using Raw = typename Builtin<Underlying>::Raw;
  static constexpr Slot kSlot = Builtin<Underlying>::kSlot;

  static Raw pack(Encoder&, T value) noexcept { return static_cast<Raw>(value); }
  static T unpack(Decoder&, Raw raw) noexcept {
    return static_cast<T>(static_cast<Underlying>(raw));
  }

  template <class Writer>
  static constexpr void sign(Writer& writer) {
    Builtin<Underlying>::sign(writer);
  }
};

template <>
struct Builtin<std::monostate> : EncodingDefaults {
  using Parts = Types<>;
  static constexpr Slot kSlot = Slot::none;

  static std::monostate make(Decoder&) noexcept { return {}; }

  template <class Writer>
  static constexpr void sign(Writer& writer) {
    writer.text("void");
  }
};

/// A count of the duration's own period, as 64 bits whatever the representation's size.
template <Number Rep, class Period>
struct Builtin<std::chrono::duration<Rep, Period>> : EncodingDefaults {
  using Parts = Types<>;
  using Raw = std::uint64_t;
  using Duration = std::chrono::duration<Rep, Period>;
  using Count = std::conditional_t<std::floating_point<Rep>, double, std::int64_t>;
  static_assert(std::floating_point<Rep> || std::is_signed_v<Rep>,
                "batchrpc: a duration's representation must be a signed integer, float or double");
  static constexpr Slot kSlot = Slot::bits64;

  static Raw pack(Encoder&, const Duration& value) noexcept {
    return std::bit_cast<Raw>(static_cast<Count>(value.count()));
  }
  static Duration unpack(Decoder&, Raw raw) {
    const auto count = std::bit_cast<Count>(raw);
    if constexpr (std::integral<Rep> && sizeof(Rep) < sizeof(Count)) {
      if (count < std::numeric_limits<Rep>::min() || count > std::numeric_limits<Rep>::max()) {
        Decoder::fail("a duration that is too long for its type");
      }
    }
    return Duration(static_cast<Rep>(count));
  }

  template <class Writer>
  static constexpr void sign(Writer& writer) {
    writer.text("dur(");
    sign_count(writer);
    writer.text(")");
  }
  template <class Writer>
  static constexpr void sign_count(Writer& writer) {
    writer.text(std::floating_point<Rep> ? "f64," : "i64,");
    writer.number(static_cast<std::uint64_t>(Period::num));
    writer.text("/");
    writer.number(static_cast<std::uint64_t>(Period::den));
  }
};

/// The duration since the clock's epoch. A steady clock's epoch differs between machines.
template <class Clock, HasBuiltin Duration>
struct Builtin<std::chrono::time_point<Clock, Duration>> : EncodingDefaults {
  using Parts = Types<>;
  using Raw = std::uint64_t;
  using Time = std::chrono::time_point<Clock, Duration>;
  static constexpr Slot kSlot = Slot::bits64;

  static Raw pack(Encoder& encoder, const Time& value) noexcept {
    return Builtin<Duration>::pack(encoder, value.time_since_epoch());
  }
  static Time unpack(Decoder& decoder, Raw raw) {
    return Time(Builtin<Duration>::unpack(decoder, raw));
  }

  template <class Writer>
  static constexpr void sign(Writer& writer) {
    if constexpr (std::same_as<Clock, std::chrono::system_clock>) {
      writer.text("time(sys,");
    } else if constexpr (std::same_as<Clock, std::chrono::steady_clock>) {
      writer.text("time(steady,");
    } else {
      writer.text("time(other,");
    }
    Builtin<Duration>::sign_count(writer);
    writer.text(")");
  }
};

}  // namespace batchrpc::detail
