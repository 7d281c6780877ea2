#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "batchrpc/wire/codable.hpp"
#include "batchrpc/wire/scalars.hpp"

/// Encodes lists: sequences (vector, deque, list), std::array and C arrays, spans of numbers.
namespace batchrpc::detail {

/// How a list's elements of type T are stored.
template <class T>
constexpr ElementSize element_size() {
  if constexpr (Encoding<T>::kStruct) {
    return ElementSize::composite;
  } else {
    switch (Encoding<T>::kSlot) {
      case Slot::none:
        return ElementSize::none;
      case Slot::bit:
        return ElementSize::bit;
      case Slot::bits8:
        return ElementSize::byte;
      case Slot::bits16:
        return ElementSize::two_bytes;
      case Slot::bits32:
        return ElementSize::four_bytes;
      case Slot::bits64:
        return ElementSize::eight_bytes;
      case Slot::pointer:
        break;
    }
    return ElementSize::pointer;
  }
}

template <class T>
inline constexpr bool kCopiedAsBlock = is_block_element<T>();

/// Writes `count` elements, starting with `first`.
template <class T, class Iterator>
void write_elements(Encoder& encoder, std::size_t pointer, Iterator first, std::size_t count) {
  using E = Encoding<T>;
  if (count == 0) return;  // the null pointer is the empty list
  if constexpr (E::kStruct) {
    constexpr StructSize size = E::kSize;
    std::size_t place = encoder.add_structs(pointer, count, size);
    for (std::size_t i = 0; i < count; ++i, ++first, place += size.words()) {
      E::fill(encoder, place, *first);
    }
  } else if constexpr (E::kSlot == Slot::none) {
    encoder.add_list(pointer, ElementSize::none, count);
  } else {
    const std::size_t place = encoder.add_list(pointer, element_size<T>(), count);
    for (std::size_t i = 0; i < count; ++i, ++first) {
      if constexpr (E::kSlot == Slot::pointer) {
        E::write(encoder, place + i, *first);
      } else {
        const auto raw = E::pack(encoder, *first);
        store(encoder.words().data() + place, static_cast<std::uint32_t>(i), raw);
      }
    }
  }
}

template <class T>
void write_block(Encoder& encoder, std::size_t pointer, std::span<const T> values) {
  if (values.empty()) return;
  encoder.add_block(pointer, kElementSizeOf<sizeof(T)>, values.data(), values.size(),
                    values.size_bytes());
}

/// The element `index` of a list that Decoder::list has checked.
template <class T>
T read_element(Decoder& decoder, const ListView& list, std::uint32_t index) {
  using E = Encoding<T>;
  if constexpr (E::kStruct) {
    constexpr StructSize size = E::kSize;
    Word room[size.data == 0 ? 1 : size.data];
    return E::take(decoder, decoder.element(list, index, size, room));
  } else if constexpr (E::kSlot == Slot::none) {
    return E::make(decoder);
  } else if constexpr (E::kSlot == Slot::pointer) {
    return E::read(decoder, decoder.pointer_element(list, index));
  } else {
    using Raw = typename RawOf<T>::type;
    if (list.size == ElementSize::composite) {
      return E::unpack(decoder, load<Raw>(decoder.data_element(list, index), 0));
    }
    return E::unpack(decoder, load<Raw>(decoder.words() + list.first, index));
  }
}

/// The elements of a list of numbers, if they are contiguous; else null.
template <class T>
const T* block_of(const Decoder& decoder, const ListView& list) {
  if (list.size == ElementSize::composite) return nullptr;
  return reinterpret_cast<const T*>(decoder.words() + list.first);
}

struct ListEncoding : EncodingDefaults {
  static constexpr Slot kSlot = Slot::pointer;
};

// Containers are recognised by their members, so that their headers need not be included.
template <class C>
concept Container = requires(const C& c) {
  typename C::value_type;
  typename C::allocator_type;
  c.begin();
  c.size();
};
template <class C>
concept HasTraits = requires {
  typename C::traits_type;
};
template <class C>
concept HasKey = requires {
  typename C::key_type;
};
template <class C>
concept HasMapped = requires {
  typename C::mapped_type;
};
template <class C>
concept HasPushBack = requires(C& c, typename C::value_type&& v) {
  c.push_back(std::move(v));
};
template <class C>
concept HasReserve = requires(C& c) {
  c.reserve(1);
};
template <class C>
concept HasShrink = requires(C& c) {
  c.shrink_to_fit();
};

/// Containers like vector.
template <class C>
concept Sequence = Container<C> && HasPushBack<C> && !HasTraits<C>;
/// Sets, ordered or unordered.
template <class C>
concept Set = Container<C> && HasKey<C> && !HasMapped<C>;
/// Maps, ordered or unordered.
template <class C>
concept Map = Container<C> && HasKey<C> && HasMapped<C>;

/// A deque allocates memory even without elements.
template <class C>
concept Deque = Sequence<C> && HasShrink<C> && !HasReserve<C>;
inline constexpr std::size_t kDequeWords = 80;

/// The memory of a node of a list, set or map besides its value.
inline constexpr std::size_t kNodeBytes = 48;

/// The memory of one element of a sequence.
template <Sequence C>
constexpr std::size_t memory_of_element() {
  constexpr std::size_t kSize = sizeof(typename C::value_type);
  if constexpr (HasReserve<C>) {
    return kSize;
  } else if constexpr (Deque<C>) {
    constexpr std::size_t kBlock = 512;
    constexpr std::size_t kInBlock = kSize < kBlock ? kBlock / kSize : 1;
    return (std::max(kBlock, kSize) + kNodeBytes + kInBlock - 1) / kInBlock;
  } else {
    return kSize + kNodeBytes;
  }
}

/// Throws BadMessage for a list whose structs have no fields on the wire, although a T has some. An
/// Encoder never writes that, and it would make many values of few bytes.
template <class T>
void require_fields(const ListView& list) {
  if constexpr (Encoding<T>::kStruct) {
    const bool sizeless = list.size == ElementSize::none ||
                          (list.size == ElementSize::composite && list.element.words() == 0);
    if (Encoding<T>::kSize.words() > 0 && sizeless && list.count > 0) [[unlikely]]
      Decoder::fail("a list of structs without their fields");
  }
}

template <Sequence C>
struct Builtin<C> : ListEncoding {
  using T = typename C::value_type;
  using Parts = Types<T>;
  static constexpr bool kBlock = kCopiedAsBlock<T> && requires(const C& c) { c.data(); };

  static void write(Encoder& encoder, std::size_t pointer, const C& value) {
    if constexpr (kBlock) {
      write_block<T>(encoder, pointer, value);
    } else {
      write_elements<T>(encoder, pointer, value.begin(), value.size());
    }
  }
  static C read(Decoder& decoder, PointerRef pointer) {
    if constexpr (kBlock) {
      const ListView list = decoder.list(pointer, element_size<T>(), sizeof(T));
      if (const T* first = block_of<T>(decoder, list)) return C(first, first + list.count);
      return read_each(decoder, list);
    } else {
      const Decoder::Nesting nesting(decoder);
      return read_each(decoder, decoder.list(pointer, element_size<T>(), memory_of_element<C>()));
    }
  }
  template <class Writer>
  static constexpr void sign(Writer& writer) {
    writer.text("[");
    writer.template type<T>();
    writer.text("]");
  }

 private:
  static C read_each(Decoder& decoder, const ListView& list) {
    require_fields<T>(list);
    if constexpr (Deque<C>) decoder.charge(kDequeWords);
    C result;
    if constexpr (HasReserve<C>) result.reserve(list.count);
    for (std::uint32_t i = 0; i < list.count; ++i) {
      result.push_back(read_element<T>(decoder, list, i));
    }
    return result;
  }
};

/// A span can be sent. A received span of constant numbers is a view into the message and is valid
/// during the handler's call.
template <class T>
struct Builtin<std::span<T>> : ListEncoding {
  using Element = std::remove_cv_t<T>;
  using Parts = Types<Element>;
  static constexpr bool kDecodable = std::is_const_v<T> && kCopiedAsBlock<Element>;

  static void write(Encoder& encoder, std::size_t pointer, std::span<T> value) {
    if constexpr (kCopiedAsBlock<Element>) {
      write_block<Element>(encoder, pointer, value);
    } else {
      write_elements<Element>(encoder, pointer, value.begin(), value.size());
    }
  }
  static std::span<T> read(Decoder& decoder, PointerRef pointer) {
    const ListView list = decoder.list(pointer, element_size<Element>(), sizeof(T));
    const T* first = block_of<Element>(decoder, list);
    if (first == nullptr) Decoder::fail("structs where numbers are expected");
    return {first, list.count};
  }
  template <class Writer>
  static constexpr void sign(Writer& writer) {
    writer.text("[");
    writer.template type<Element>();
    writer.text("]");
  }
};

/// Arrays are lists with exactly N elements. The null pointer means N default values.
template <class T, std::size_t N>
struct ArrayEncoding : ListEncoding {
  using Parts = Types<T>;

  template <class Writer>
  static constexpr void sign(Writer& writer) {
    writer.text("[");
    writer.template type<T>();
    writer.text(";");
    writer.number(N);
    writer.text("]");
  }

 protected:
  static ListView open(Decoder& decoder, PointerRef pointer) {
    ListView list = decoder.list(pointer, element_size<T>(), 0);
    if (pointer.word != 0 && list.count != N) Decoder::fail("an array of another length");
    return list;
  }
  static T at(Decoder& decoder, const ListView& list, std::uint32_t index) {
    if (list.count != 0) return read_element<T>(decoder, list, index);
    if constexpr (Encoding<T>::kSlot == Slot::none) {
      return Encoding<T>::make(decoder);
    } else if constexpr (Encoding<T>::kSlot == Slot::pointer) {
      return Encoding<T>::read(decoder, {});
    } else {
      return Encoding<T>::unpack(decoder, typename RawOf<T>::type{});
    }
  }
};

template <class T, std::size_t N>
struct Builtin<std::array<T, N>> : ArrayEncoding<T, N> {
  using Base = ArrayEncoding<T, N>;

  static void write(Encoder& encoder, std::size_t pointer, const std::array<T, N>& value) {
    if constexpr (kCopiedAsBlock<T>) {
      write_block<T>(encoder, pointer, value);
    } else {
      write_elements<T>(encoder, pointer, value.begin(), N);
    }
  }
  static std::array<T, N> read(Decoder& decoder, PointerRef pointer) {
    const Decoder::Nesting nesting(decoder);
    const ListView list = Base::open(decoder, pointer);
    if constexpr (N == 0) {
      return {};
    } else if constexpr (kCopiedAsBlock<T> || (N > 16 && std::is_default_constructible_v<T>)) {
      std::array<T, N> result{};
      if constexpr (kCopiedAsBlock<T>) {
        if (list.count == 0) return result;
        if (const T* first = block_of<T>(decoder, list)) {
          std::memcpy(result.data(), first, sizeof(T) * N);
          return result;
        }
      }
      for (std::size_t i = 0; i < N; ++i) {
        result[i] = Base::at(decoder, list, static_cast<std::uint32_t>(i));
      }
      return result;
    } else {
      return read_at(std::make_index_sequence<N>{}, decoder, list);
    }
  }

 private:
  template <std::size_t... I>
  static std::array<T, N> read_at(std::index_sequence<I...>, [[maybe_unused]] Decoder& decoder,
                                  [[maybe_unused]] const ListView& list) {
    return std::array<T, N>{{Base::at(decoder, list, static_cast<std::uint32_t>(I))...}};
  }
};

/// Arrays as members of aggregates. Not arrays of char, which could be text or numbers, and not
/// arrays of arrays.
template <NotArray T, std::size_t N>
struct Builtin<T[N]> : ArrayEncoding<T, N> {
  using Base = ArrayEncoding<T, N>;

  static void write(Encoder& encoder, std::size_t pointer, const T (&value)[N]) {
    write_elements<T>(encoder, pointer, &value[0], N);
  }
  static void read_into(Decoder& decoder, PointerRef pointer, T (&result)[N]) {
    const Decoder::Nesting nesting(decoder);
    const ListView list = Base::open(decoder, pointer);
    for (std::size_t i = 0; i < N; ++i) {
      result[i] = Base::at(decoder, list, static_cast<std::uint32_t>(i));
    }
  }
};

}  // namespace batchrpc::detail
