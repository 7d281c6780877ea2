#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// Computes the offsets of a struct's fields at compile time, as the Cap'n Proto compiler does for
/// fields in the order of their ordinals (NodeTranslator::StructLayout). So a printed schema has
/// the same offsets.
namespace batchrpc::detail {

/// The space of a field; for data, the logarithm of its size in bits.
enum class Slot : std::uint8_t {
  bit = 0,
  bits8 = 3,
  bits16 = 4,
  bits32 = 5,
  bits64 = 6,
  pointer = 7,
  none = 8,
};

/// The sizes of a struct's two sections, in words.
struct StructSize {
  std::uint16_t data = 0;
  std::uint16_t pointers = 0;

  [[nodiscard]] constexpr std::size_t words() const noexcept {
    return std::size_t{data} + pointers;
  }
  /// The upper half of a pointer to such a struct.
  [[nodiscard]] constexpr std::uint32_t bits() const noexcept {
    return std::uint32_t{data} | (std::uint32_t{pointers} << 16);
  }
  friend constexpr bool operator==(StructSize, StructSize) = default;
};

/// The offsets of fields, in units of their own size, or indices into the pointers.
template <std::size_t N>
struct StructLayout {
  StructSize size;
  std::array<std::uint32_t, N == 0 ? 1 : N> offsets{};
};

/// The same for a struct that is one union.
template <std::size_t N>
struct UnionLayout {
  StructSize size;
  std::uint32_t discriminant =
      0;  ///< in units of 16 bits; used if there are at least two alternatives
  std::array<std::uint32_t, N == 0 ? 1 : N> offsets{};
};

/// A data section to which fields are added. It has whole words and at most one hole of each
/// smaller size.
class DataSection {
 public:
  /// Finds room for a field of 2^`size` bits. Returns its offset in units of that size.
  constexpr std::uint32_t add(unsigned size) {
    // Takes the smallest hole that is large enough, else a new word.
    unsigned found = size;
    while (found < kSizes && holes_[found] == 0)
      ++found;
    std::uint32_t offset = 0;
    if (found < kSizes) {
      offset = holes_[found];
      holes_[found] = 0;
    } else {
      offset = words_++;
      found = kSizes;
    }
    // Halves it until it fits. Each upper half remains as a hole.
    while (found > size) {
      --found;
      offset *= 2;
      holes_[found] = offset + 1;
    }
    return offset;
  }

  /// Enlarges the field of 2^`size` bits at `offset` to 2^`wanted` bits, if the space behind it is
  /// unused.
  constexpr bool expand(unsigned size, std::uint32_t offset, unsigned wanted) {
    std::uint32_t at = offset;
    for (unsigned step = size; step < wanted; ++step, at /= 2) {
      if (step >= kSizes || holes_[step] != at + 1) return false;
    }
    for (unsigned step = size; step < wanted; ++step)
      holes_[step] = 0;
    return true;
  }

  [[nodiscard]] constexpr std::uint32_t words() const noexcept { return words_; }

 private:
  static constexpr unsigned kSizes = 6;
  // Offset zero is never a hole, so zero means none.
  std::array<std::uint32_t, kSizes> holes_{};
  std::uint32_t words_ = 0;
};

/// Writes the offsets of the `count` fields in `slots` to `offsets`. Not with std::span, which is
/// no constant expression under _GLIBCXX_DEBUG.
constexpr StructSize place_fields(const Slot* slots, std::uint32_t* offsets, std::size_t count) {
  DataSection data;
  std::uint32_t pointers = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (slots[i] == Slot::pointer) {
      offsets[i] = pointers++;
    } else if (slots[i] != Slot::none) {
      offsets[i] = data.add(static_cast<unsigned>(slots[i]));
    }
  }
  return {static_cast<std::uint16_t>(data.words()), static_cast<std::uint16_t>(pointers)};
}

template <std::size_t N>
constexpr StructLayout<N> struct_layout(const std::array<Slot, N>& slots) {
  StructLayout<N> layout;
  layout.size = place_fields(slots.data(), layout.offsets.data(), N);
  return layout;
}

/// Alternatives share their room. An alternative takes the tightest place of the earlier ones; else
/// it expands one; else it gets a new place. The discriminant is added with the second alternative.
template <std::size_t N>
constexpr UnionLayout<N> union_layout(const std::array<Slot, N>& slots) {
  struct Place {
    unsigned size = 0;
    std::uint32_t offset = 0;
  };
  UnionLayout<N> layout;
  DataSection data;
  std::array<Place, N == 0 ? 1 : N> places{};
  std::size_t place_count = 0;
  std::uint16_t pointers = 0;
  for (std::size_t i = 0; i < N; ++i) {
    if (i == 1) layout.discriminant = data.add(static_cast<unsigned>(Slot::bits16));
    if (slots[i] == Slot::none) continue;
    if (slots[i] == Slot::pointer) {
      pointers = 1;
      continue;
    }
    const auto size = static_cast<unsigned>(slots[i]);
    Place* best = nullptr;
    for (std::size_t j = 0; j < place_count; ++j) {
      if (size <= places[j].size && (best == nullptr || places[j].size < best->size))
        best = &places[j];
    }
    for (std::size_t j = 0; best == nullptr && j < place_count; ++j) {
      if (data.expand(places[j].size, places[j].offset, size)) {
        best = &places[j];
        best->offset >>= size - best->size;
        best->size = size;
      }
    }
    if (best == nullptr) {
      best = &places[place_count++];
      *best = {size, data.add(size)};
    }
    layout.offsets[i] = best->offset << (best->size - size);
  }
  layout.size = {static_cast<std::uint16_t>(data.words()), pointers};
  return layout;
}

}  // namespace batchrpc::detail
