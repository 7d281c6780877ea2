#pragma once

#include <cstddef>
#include <utility>

#include "batchrpc/wire/codable.hpp"
#include "batchrpc/wire/lists.hpp"
#include "batchrpc/wire/structs.hpp"

/// Encodes sets as lists, and maps as lists of entries with `key` and `value`.
namespace batchrpc::detail {

/// The limit of elements in one bucket. A hostile peer may choose keys that all fall into one
/// bucket, where each insertion takes longer than the one before.
inline constexpr std::size_t kMaxBucket = 256;

template <class C>
concept Hashed = requires(C& c, const typename C::key_type& key) {
  c.reserve(c.bucket_size(c.bucket(key)));
};
/// Not for multi containers, in which equal keys share a bucket.
template <class C>
concept HashedOnce = Hashed<C> && requires(C& c, typename C::value_type&& value) {
  c.insert(std::move(value)).second;
};

template <class C>
void check_bucket([[maybe_unused]] const C& result,
                  [[maybe_unused]] const typename C::key_type& key) {
  if constexpr (HashedOnce<C>) {
    if (result.bucket_size(result.bucket(key)) > kMaxBucket) {
      Decoder::fail("too many keys with the same hash");
    }
  }
}

/// A duplicate element is a BadMessage unless the set allows it (multiset).
template <Set C>
struct Builtin<C> : ListEncoding {
  using T = typename C::key_type;
  using Parts = Types<T>;

  static void write(Encoder& encoder, std::size_t pointer, const C& value) {
    write_elements<T>(encoder, pointer, value.begin(), value.size());
  }
  static C read(Decoder& decoder, PointerRef pointer) {
    const Decoder::Nesting nesting(decoder);
    const ListView list = decoder.list(pointer, element_size<T>(), sizeof(T) + kNodeBytes);
    require_fields<T>(list);
    C result;
    if constexpr (Hashed<C>) result.reserve(list.count);
    for (std::uint32_t i = 0; i < list.count; ++i) {
      const auto before = result.size();
      const auto at = result.insert(result.end(), read_element<T>(decoder, list, i));
      if (result.size() == before) Decoder::fail("a set with a duplicate element");
      check_bucket(result, *at);
    }
    return result;
  }
  template <class Writer>
  static constexpr void sign(Writer& writer) {
    writer.text("set(");
    writer.template type<T>();
    writer.text(")");
  }
};

/// A duplicate key is a BadMessage unless the map allows it (multimap). Unordered maps arrive
/// equal, but not necessarily in the same order.
template <Map C>
struct Builtin<C> : ListEncoding {
  using Key = typename C::key_type;
  using Value = typename C::mapped_type;
  using Parts = Types<Key, Value>;
  using Entry = Fields<Key, Value>;

  static void write(Encoder& encoder, std::size_t pointer, const C& map) {
    if (map.size() == 0) return;
    constexpr StructSize size = Entry::kSize;
    std::size_t place = encoder.add_structs(pointer, map.size(), size);
    for (const auto& [key, value] : map) {
      Entry::fill(encoder, place, key, value);
      place += size.words();
    }
  }
  static C read(Decoder& decoder, PointerRef pointer) {
    constexpr StructSize size = Entry::kSize;
    const Decoder::Nesting nesting(decoder);
    const ListView list =
        decoder.list(pointer, ElementSize::composite, sizeof(typename C::value_type) + kNodeBytes);
    require_fields<std::pair<Key, Value>>(list);
    C result;
    if constexpr (Hashed<C>) result.reserve(list.count);
    for (std::uint32_t i = 0; i < list.count; ++i) {
      Word room[size.data == 0 ? 1 : size.data];
      const StructView view = decoder.element(list, i, size, room);
      auto key = Entry::template get<0>(decoder, view);
      const auto before = result.size();
      const auto at =
          result.emplace_hint(result.end(), std::move(key), Entry::template get<1>(decoder, view));
      if (result.size() == before) Decoder::fail("a map with a duplicate key");
      check_bucket(result, at->first);
    }
    return result;
  }
  template <class Writer>
  static constexpr void sign(Writer& writer) {
    writer.text("map(");
    writer.template type<Key>();
    writer.text(",");
    writer.template type<Value>();
    writer.text(")");
  }
};

}  // namespace batchrpc::detail
