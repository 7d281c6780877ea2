#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/wire/aggregate.hpp"
#include "batchrpc/wire/codable.hpp"

/// Encodes structs: arguments, pairs, tuples, aggregates.
namespace batchrpc::detail {

/// Reads the field of type T at `offset` of `view`.
template <class T>
T read_field(Decoder& decoder, const StructView& view, std::uint32_t offset) {
  using E = Encoding<T>;
  if constexpr (E::kSlot == Slot::none) {
    return E::make(decoder);
  } else if constexpr (E::kSlot == Slot::pointer) {
    return E::read(decoder, decoder.pointer(view, offset));
  } else {
    return E::unpack(decoder, load<typename RawOf<T>::type>(view.data, offset));
  }
}

/// Writes the field of type T at `offset` of the struct at `place`, whose data section has
/// `data_words` words.
template <class T>
void write_field(Encoder& encoder, std::size_t place, std::size_t data_words, std::uint32_t offset,
                 const T& value) {
  using E = Encoding<T>;
  if constexpr (E::kSlot == Slot::pointer) {
    E::write(encoder, place + data_words + offset, value);
  } else if constexpr (E::kSlot != Slot::none) {
    const auto raw = E::pack(encoder, value);
    store(encoder.words().data() + place, offset, raw);
  }
}

/// A struct whose fields have these types, in this order.
template <class... Field>
struct Fields {
  static constexpr auto kLayout =
      struct_layout(std::array<Slot, sizeof...(Field)>{Encoding<Field>::kSlot...});
  static constexpr StructSize kSize = kLayout.size;

  static void fill(Encoder& encoder, std::size_t place, const Field&... value) {
    fill_at(std::index_sequence_for<Field...>{}, encoder, place, value...);
  }

  template <std::size_t I>
  static auto get(Decoder& decoder, const StructView& view) {
    return read_field<std::tuple_element_t<I, std::tuple<Field...>>>(decoder, view,
                                                                     kLayout.offsets[I]);
  }

 private:
  template <std::size_t... I>
  static void fill_at(std::index_sequence<I...>, Encoder& encoder, std::size_t place,
                      const Field&... value) {
    if constexpr (kSize.data > 0) {
      // First the fields whose encoding runs no user code and leaves the words in place.
      Word* const data = encoder.words().data() + place;
      (store_plain<Field>(encoder, data, kLayout.offsets[I], value), ...);
    }
    (write_rest<Field>(encoder, place, kLayout.offsets[I], value), ...);
  }

  template <class T>
  static constexpr bool kIsPlain =
      Encoding<T>::kSlot != Slot::pointer&& Encoding<T>::kSlot != Slot::none&& Encoding<T>::kPlain;

  template <class T>
  static void store_plain(Encoder& encoder, Word* data, std::uint32_t offset, const T& value) {
    if constexpr (kIsPlain<T>) store(data, offset, Encoding<T>::pack(encoder, value));
  }
  template <class T>
  static void write_rest(Encoder& encoder, std::size_t place, std::uint32_t offset,
                         const T& value) {
    if constexpr (!kIsPlain<T>) write_field<T>(encoder, place, kSize.data, offset, value);
  }
};

/// The pointer handling of all encodings that are structs. Derived has kSize, fill and take.
template <class Derived, class T>
struct StructEncoding : EncodingDefaults {
  static constexpr Slot kSlot = Slot::pointer;
  static constexpr bool kStruct = true;

  static void write(Encoder& encoder, std::size_t pointer, const T& value) {
    Derived::fill(encoder, encoder.add_struct(pointer, Derived::kSize), value);
  }
  static T read(Decoder& decoder, PointerRef pointer) {
    constexpr StructSize size = Derived::kSize;
    Word room[size.data == 0 ? 1 : size.data];
    const StructView view = decoder.structure(pointer, size, room);
    if constexpr (size.pointers == 0) {
      return Derived::take(decoder, view);
    } else {
      const Decoder::Nesting nesting(decoder);
      return Derived::take(decoder, view);
    }
  }
};

template <class Writer, class... Part>
constexpr void sign_fields(Writer& writer, Types<Part...>) {
  [[maybe_unused]] bool first = true;
  writer.text("{");
  ((writer.text(std::exchange(first, false) ? "" : ","), writer.template type<Part>()), ...);
  writer.text("}");
}

template <class A, class B>
struct Builtin<std::pair<A, B>> : StructEncoding<Builtin<std::pair<A, B>>, std::pair<A, B>> {
  using Parts = Types<A, B>;
  using Members = Fields<A, B>;
  static constexpr StructSize kSize = Members::kSize;

  static void fill(Encoder& encoder, std::size_t place, const std::pair<A, B>& value) {
    Members::fill(encoder, place, value.first, value.second);
  }
  static std::pair<A, B> take(Decoder& decoder, const StructView& view) {
    return std::pair<A, B>{Members::template get<0>(decoder, view),
                           Members::template get<1>(decoder, view)};
  }
  template <class Writer>
  static constexpr void sign(Writer& writer) {
    sign_fields(writer, Parts{});
  }
};

template <class... T>
struct Builtin<std::tuple<T...>> : StructEncoding<Builtin<std::tuple<T...>>, std::tuple<T...>> {
  using Parts = Types<T...>;
  using Members = Fields<T...>;
  static constexpr StructSize kSize = Members::kSize;

  static void fill(Encoder& encoder, std::size_t place, const std::tuple<T...>& value) {
    std::apply([&](const T&... member) { Members::fill(encoder, place, member...); }, value);
  }
  static std::tuple<T...> take(Decoder& decoder, const StructView& view) {
    return take_at(std::index_sequence_for<T...>{}, decoder, view);
  }
  template <class Writer>
  static constexpr void sign(Writer& writer) {
    sign_fields(writer, Parts{});
  }

 private:
  template <std::size_t... I>
  static std::tuple<T...> take_at(std::index_sequence<I...>, [[maybe_unused]] Decoder& decoder,
                                  [[maybe_unused]] const StructView& view) {
    return std::tuple<T...>{Members::template get<I>(decoder, view)...};
  }
};

template <class Types>
struct FieldsOf;
template <class... T>
struct FieldsOf<Types<T...>> {
  using type = Fields<T...>;
  static constexpr bool kHasArrays = (std::is_array_v<T> || ...);
};

/// Encodes members in their order. Decoding ignores default member initialisers.
template <Aggregate T>
struct Builtin<T> : StructEncoding<Builtin<T>, T> {
  using Parts = MemberTypes<T>;
  using Members = typename FieldsOf<Parts>::type;
  static constexpr StructSize kSize = Members::kSize;

  static void fill(Encoder& encoder, std::size_t place, const T& value) {
    visit_members(value,
                  [&](auto, const auto&... member) { Members::fill(encoder, place, member...); });
  }
  static T take(Decoder& decoder, const StructView& view) {
    return take_at(std::make_index_sequence<kMemberCount<T>>{}, decoder, view);
  }
  template <class Writer>
  static constexpr void sign(Writer& writer) {
    sign_fields(writer, Parts{});
  }

 private:
  template <std::size_t... I>
  static T take_at(std::index_sequence<I...>, [[maybe_unused]] Decoder& decoder,
                   [[maybe_unused]] const StructView& view) {
    if constexpr (FieldsOf<Parts>::kHasArrays) {
      T value{};
      visit_members(value,
                    [&](auto, auto&... member) { (take_into<I>(decoder, view, member), ...); });
      return value;
    } else {
      return T{Members::template get<I>(decoder, view)...};
    }
  }
  template <std::size_t I, class Member>
  static void take_into(Decoder& decoder, const StructView& view, Member& member) {
    if constexpr (std::is_array_v<Member>) {
      Encoding<Member>::read_into(decoder, decoder.pointer(view, Members::kLayout.offsets[I]),
                                  member);
    } else {
      member = Members::template get<I>(decoder, view);
    }
  }
};

}  // namespace batchrpc::detail
