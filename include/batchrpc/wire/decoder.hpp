#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/wire/encoder.hpp"
#include "batchrpc/wire/layout.hpp"

namespace batchrpc {

/// Limits on what a message may cost its receiver. They are checked before anything is allocated.
struct DecodeLimits {
  /// The words that may be read, and that decoded values may take in memory, whatever the message
  /// claims. A part that several pointers refer to counts each time. 0: 64 MiB, or eight times the
  /// message if that is more. Every message of an Encoder keeps that limit, unless it has millions
  /// of small elements in lists, sets or maps, whose nodes count.
  std::size_t traversal_words = 0;
  /// How deep values may be nested, which matters for recursive types. Each list, map, present
  /// optional or unique_ptr, and struct with members behind pointers is one level. An absent list
  /// counts too.
  unsigned nesting = 64;
  /// The payload bytes that may be copied (`Bytes` and byte views share them instead). 0: each
  /// payload once.
  std::size_t payload_bytes = 0;
};

namespace detail {

/// A pointer's word and its position. Zero is the null pointer.
struct PointerRef {
  std::size_t at = 0;
  Word word = 0;
};

/// A checked struct. `data` has at least the words that the reader expects.
struct StructView {
  const Word* data = nullptr;
  std::size_t first_pointer = 0;
  std::uint32_t pointer_count = 0;
};

/// A checked list.
struct ListView {
  std::size_t first = 0;  ///< position of the first element
  std::uint32_t count = 0;
  ElementSize size = ElementSize::none;
  StructSize element;  ///< for a composite list
};

template <class Raw>
[[nodiscard]] inline Raw load(const Word* data, std::uint32_t offset) noexcept {
  if constexpr (sizeof(Raw) == sizeof(Word)) {
    return static_cast<Raw>(data[offset]);
  } else {
    Raw raw;
    std::memcpy(&raw, reinterpret_cast<const std::byte*>(data) + std::size_t{offset} * sizeof(Raw),
                sizeof(Raw));
    return raw;
  }
}
template <>
[[nodiscard]] inline bool load<bool>(const Word* data, std::uint32_t offset) noexcept {
  return ((data[offset / 64] >> (offset % 64)) & 1U) != 0;
}

}  // namespace detail

/// Reads one single-segment Cap'n Proto message and trusts nothing in it. Anything out of bounds,
/// beyond a limit, or of an unexpected kind is a BadMessage; so are pointers to other segments and
/// capabilities. Views that it returns are valid as long as the segment and the payloads. Not
/// thread-safe.
class Decoder {
 public:
  /// Takes a message and its payloads; both must outlive the decoder and its views.
  Decoder(std::span<const Word> segment, std::span<const Bytes> payloads,
          const DecodeLimits& limits = {}) noexcept
      : segment_(segment),
        payloads_(payloads),
        words_left_(limits.traversal_words != 0 ? limits.traversal_words
                                                : default_words(segment.size())),
        payload_bytes_(limits.payload_bytes),
        nesting_left_(limits.nesting) {}

  /// The payload at `index`. Throws BadMessage if there is none.
  [[nodiscard]] const Bytes& payload(std::uint32_t index) const {
    if (index >= payloads_.size()) [[unlikely]]
      fail("a reference to a payload that it does not have");
    return payloads_[index];
  }

  /// Charges `bytes` of a payload; call it before you copy them. Throws BadMessage beyond the
  /// limit.
  BATCHRPC_EXPORT void charge_payload(std::size_t bytes);

  /// Charges `words` words; call it before you allocate memory for what the message claims. Throws
  /// BadMessage beyond the limit.
  void charge(std::uint64_t words) {
    if (words > words_left_) [[unlikely]]
      fail("more data than the traversal limit allows");
    words_left_ -= words;
  }

  /// Throws BadMessage; `what` completes the sentence "it has …".
  [[noreturn]] BATCHRPC_EXPORT static void fail(std::string_view what);

  // The functions below serve the codecs of this layer.

  /// The segment's words.
  [[nodiscard]] const Word* words() const noexcept { return segment_.data(); }

  /// The pointer at word `at`. Throws BadMessage beyond the segment.
  [[nodiscard]] detail::PointerRef pointer(std::size_t at) const {
    if (at >= segment_.size()) [[unlikely]]
      fail("a pointer beyond its end");
    return {at, segment_[at]};
  }
  /// The pointer `index` of a struct; null if the struct has fewer.
  [[nodiscard]] detail::PointerRef pointer(const detail::StructView& view,
                                           std::uint32_t index) const noexcept {
    if (index >= view.pointer_count) return {};
    return {view.first_pointer + index, segment_[view.first_pointer + index]};
  }

  /// The struct behind `pointer`. If its data section is shorter than `expected`, it is copied to
  /// `room`, which has the expected number of words, and filled up with zeros.
  [[nodiscard]] detail::StructView structure(detail::PointerRef pointer,
                                             detail::StructSize expected, Word* room) {
    const auto low = static_cast<std::uint32_t>(pointer.word);
    if ((pointer.word >> 32) == expected.bits() && (low & 3U) == 0) [[likely]] {
      const std::uint64_t target = target_of(pointer);
      if (target <= segment_.size() && expected.words() <= segment_.size() - target) [[likely]] {
        charge(expected.words());
        return {segment_.data() + target, static_cast<std::size_t>(target + expected.data),
                expected.pointers};
      }
    }
    return other_structure(pointer, expected, room);
  }

  /// The list behind `pointer`. Its elements must have the size `expected`, or be structs that
  /// begin with such a field; for `composite`, a list of the struct's first field is allowed too.
  /// Charges the larger of its size on the wire and `memory` bytes per element.
  [[nodiscard]] BATCHRPC_EXPORT detail::ListView list(detail::PointerRef pointer,
                                                      detail::ElementSize expected,
                                                      std::size_t memory);

  /// The element `index` of a list of structs; `room` as in `structure`.
  [[nodiscard]] BATCHRPC_EXPORT detail::StructView element(const detail::ListView& list,
                                                           std::uint32_t index,
                                                           detail::StructSize expected,
                                                           Word* room) const;

  /// The element `index` of a list of pointers.
  [[nodiscard]] detail::PointerRef pointer_element(const detail::ListView& list,
                                                   std::uint32_t index) const noexcept {
    std::size_t at = list.first + index;
    if (list.size == detail::ElementSize::composite) {
      at = list.first + index * list.element.words() + list.element.data;
    }
    return {at, segment_[at]};
  }

  /// The first data word of element `index` of a list of structs.
  [[nodiscard]] const Word* data_element(const detail::ListView& list,
                                         std::uint32_t index) const noexcept {
    return segment_.data() + list.first + index * list.element.words();
  }

  /// Text without its NUL, as a view into the segment.
  [[nodiscard]] BATCHRPC_EXPORT std::string_view text(detail::PointerRef pointer);

  /// Counts one level of nesting for as long as it exists.
  class Nesting {
   public:
    /// Throws BadMessage beyond the limit.
    explicit Nesting(Decoder& decoder) : decoder_(decoder) {
      if (decoder_.nesting_left_ == 0) [[unlikely]]
        fail("values nested deeper than the limit");
      --decoder_.nesting_left_;
    }
    ~Nesting() { ++decoder_.nesting_left_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Decoder& decoder_;
  };

 private:
  static constexpr std::uint64_t default_words(std::size_t segment) noexcept {
    constexpr std::uint64_t kLeast = std::uint64_t{8} << 20;
    return segment > kLeast / 8 ? std::uint64_t{segment} * 8 : kLeast;
  }
  // Wraps to a huge number if the pointer points before the beginning.
  static std::uint64_t target_of(detail::PointerRef pointer) noexcept {
    const auto offset = static_cast<std::int32_t>(static_cast<std::uint32_t>(pointer.word)) >> 2;
    return std::uint64_t{pointer.at} + 1 + static_cast<std::uint64_t>(std::int64_t{offset});
  }
  void check_bounds(std::uint64_t target, std::uint64_t words) const {
    if (target > segment_.size() || words > segment_.size() - target) {
      fail("a pointer beyond its end");
    }
  }
  BATCHRPC_EXPORT detail::StructView other_structure(detail::PointerRef pointer,
                                                     detail::StructSize expected, Word* room);

  std::span<const Word> segment_;
  std::span<const Bytes> payloads_;
  std::uint64_t words_left_;
  std::uint64_t payload_bytes_;
  unsigned nesting_left_;
  bool payload_limit_known_ = false;
};

}  // namespace batchrpc
