#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "batchrpc/wire/codable.hpp"
#include "batchrpc/wire/scalars.hpp"
#include "batchrpc/wire/structs.hpp"

/// Values that may be absent or of several types. Each is a struct with one union.
namespace batchrpc::detail {

/// The common encoding of optional and unique_ptr. The null pointer is the absent value.
///     struct { union { none @0 :Void; some @1 :T; } }
template <class Derived, class Holder, class T>
struct OptionEncoding : EncodingDefaults {
  using Parts = Types<T>;
  static constexpr Slot kSlot = Slot::pointer;
  static constexpr bool kStruct = true;
  static constexpr bool kLevel = false;
  // The type is written out, so that the compiler computes the value only where it is used.
  static constexpr UnionLayout<2> kLayout =
      union_layout(std::array<Slot, 2>{Slot::none, Encoding<T>::kSlot});
  static constexpr StructSize kSize = kLayout.size;

  static void write(Encoder& encoder, std::size_t pointer, const Holder& value) {
    if (value) fill(encoder, encoder.add_struct(pointer, kSize), value);
  }
  static Holder read(Decoder& decoder, PointerRef pointer) {
    if (pointer.word == 0) return Holder();
    Word room[kSize.data];
    const StructView view = decoder.structure(pointer, kSize, room);
    return take(decoder, view);
  }
  static void fill(Encoder& encoder, std::size_t place, const Holder& value) {
    if (!value) return;
    store(encoder.words().data() + place, kLayout.discriminant, std::uint16_t{1});
    write_field<T>(encoder, place, kSize.data, kLayout.offsets[1], *value);
  }
  static Holder take(Decoder& decoder, const StructView& view) {
    const auto which = load<std::uint16_t>(view.data, kLayout.discriminant);
    if (which == 0) return Holder();
    if (which != 1) Decoder::fail("an optional value that is neither present nor absent");
    const Decoder::Nesting nesting(decoder);
    return Derived::hold(decoder, view, kLayout.offsets[1]);
  }
  template <class Writer>
  static constexpr void sign(Writer& writer) {
    writer.template type<T>();
    writer.text("?");
  }
};

template <class T>
struct Builtin<std::optional<T>> : OptionEncoding<Builtin<std::optional<T>>, std::optional<T>, T> {
  static std::optional<T> hold(Decoder& decoder, const StructView& view, std::uint32_t offset) {
    return std::optional<T>(read_field<T>(decoder, view, offset));
  }
};

template <NotArray T>
struct Builtin<std::unique_ptr<T>>
    : OptionEncoding<Builtin<std::unique_ptr<T>>, std::unique_ptr<T>, std::remove_const_t<T>> {
  static std::unique_ptr<T> hold(Decoder& decoder, const StructView& view, std::uint32_t offset) {
    decoder.charge(sizeof(T) / sizeof(Word) + 1);
    return std::unique_ptr<T>(new T(read_field<std::remove_const_t<T>>(decoder, view, offset)));
  }
};

/// The encoding of a variant: one union member per alternative, in order. The null pointer is the
/// first alternative's default.
///     struct { union { alternative0 @0 :A; alternative1 @1 :B; … } }
template <class... T>
struct Builtin<std::variant<T...>>
    : StructEncoding<Builtin<std::variant<T...>>, std::variant<T...>> {
  using Variant = std::variant<T...>;
  using Parts = Types<T...>;
  // The type is written out as that of OptionEncoding is.
  static constexpr UnionLayout<sizeof...(T)> kLayout =
      union_layout(std::array<Slot, sizeof...(T)>{Encoding<T>::kSlot...});
  static constexpr StructSize kSize = kLayout.size;

  static void fill(Encoder& encoder, std::size_t place, const Variant& value) {
    if (value.valueless_by_exception()) valueless();
    fill_at(std::index_sequence_for<T...>{}, encoder, place, value);
  }
  static Variant take(Decoder& decoder, const StructView& view) {
    if constexpr (sizeof...(T) == 1) {
      return take_alternative<0>(decoder, view);
    } else {
      const auto which = load<std::uint16_t>(view.data, kLayout.discriminant);
      if (which >= sizeof...(T)) Decoder::fail("a variant with an unknown alternative");
      return take_at(std::index_sequence_for<T...>{}, decoder, view, which);
    }
  }
  template <class Writer>
  static constexpr void sign(Writer& writer) {
    [[maybe_unused]] bool first = true;
    writer.text("(");
    ((writer.text(std::exchange(first, false) ? "" : "|"), writer.template type<T>()), ...);
    writer.text(")");
  }

 private:
  [[noreturn]] static void valueless() { throw std::bad_variant_access(); }

  template <std::size_t... I>
  static void fill_at(std::index_sequence<I...>, Encoder& encoder, std::size_t place,
                      const Variant& value) {
    const auto which = static_cast<std::uint16_t>(value.index());
    if constexpr (sizeof...(T) > 1) {
      store(encoder.words().data() + place, kLayout.discriminant, which);
    }
    ((which == I
          ? write_field<T>(encoder, place, kSize.data, kLayout.offsets[I], *std::get_if<I>(&value))
          : void()),
     ...);
  }
  template <std::size_t I>
  static Variant take_alternative(Decoder& decoder, const StructView& view) {
    return Variant(std::in_place_index<I>, read_field<std::variant_alternative_t<I, Variant>>(
                                               decoder, view, kLayout.offsets[I]));
  }
  template <std::size_t... I>
  static Variant take_at(std::index_sequence<I...>, Decoder& decoder, const StructView& view,
                         std::size_t which) {
    using Take = Variant (*)(Decoder&, const StructView&);
    static constexpr Take take_of[] = {&take_alternative<I>...};
    return take_of[which](decoder, view);
  }
};

}  // namespace batchrpc::detail
