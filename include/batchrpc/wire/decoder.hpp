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

/// What a message may cost its receiver. Checked before anything is allocated.
struct DecodeLimits {
  /// Words that may be read, and of memory that decoded values may take, whatever the message says:
  /// a part that several pointers refer to counts each time. 0: 64 MiB, or eight times the message
  /// if that is more, which every message of an Encoder keeps unless it has millions of small
  /// elements of lists, sets or maps, whose nodes count.
  std::size_t traversal_words = 0;
  /// How deep values may be nested; matters for recursive types. Each list, map, present optional
  /// or unique_ptr, and struct with members behind pointers, is one level, and so is a list that is
  /// absent, since it might be there.
  unsigned nesting = 64;
  /// Bytes of payloads that may be copied (`Bytes` and byte views share them). 0: each payload
  /// once.
  std::size_t payload_bytes = 0;
};

namespace detail {

/// A pointer's word and its place; zero is the null pointer.
struct PointerRef {
  std::size_t at = 0;
  Word word = 0;
};

/// A struct that was checked. `data` has at least the words that the reader expects.
struct StructView {
  const Word* data = nullptr;
  std::size_t first_pointer = 0;
  std::uint32_t pointer_count = 0;
};

/// A list that was checked.
struct ListView {
  std::size_t first = 0;  ///< the place of the first element
  std::uint32_t count = 0;
  ElementSize size = ElementSize::none;
  StructSize element;  ///< of a composite list
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

/// Reads one single-segment Cap'n Proto message and trusts nothing in it: whatever is out of
/// bounds, out of a limit, or not of the expected kind is a BadMessage. Pointers to other segments
/// and capabilities are, too. Views into segment and payloads that it hands out live as long as
/// those do. Not thread-safe.
class Decoder {
 public:
  /// Of one message and what travelled beside it; both stay as long as the decoder and its views.
  Decoder(std::span<const Word> segment, std::span<const Bytes> payloads,
          const DecodeLimits& limits = {}) noexcept
      : segment_(segment),
        payloads_(payloads),
        words_left_(limits.traversal_words != 0 ? limits.traversal_words
                                                : default_words(segment.size())),
        payload_bytes_(limits.payload_bytes),
        nesting_left_(limits.nesting) {}

  /// What travelled beside the message at `index`. Throws BadMessage when there is no such payload.
  [[nodiscard]] const Bytes& payload(std::uint32_t index) const {
    if (index >= payloads_.size()) [[unlikely]]
      fail("a payload that did not come");
    return payloads_[index];
  }

  /// To be called before `bytes` of a payload are copied; throws BadMessage beyond the limit.
  BATCHRPC_EXPORT void charge_payload(std::size_t bytes);

  /// To be called before memory of `words` words is taken for what the message claims; throws
  /// BadMessage beyond the limit.
  void charge(std::uint64_t words) {
    if (words > words_left_) [[unlikely]]
      fail("more than the traversal limit allows");
    words_left_ -= words;
  }

  /// Throws BadMessage.
  [[noreturn]] BATCHRPC_EXPORT static void fail(std::string_view what);

  // What follows serves the codecs of this layer.

  /// The segment.
  [[nodiscard]] const Word* words() const noexcept { return segment_.data(); }

  /// The pointer at word `at`; throws BadMessage beyond the segment.
  [[nodiscard]] detail::PointerRef pointer(std::size_t at) const {
    if (at >= segment_.size()) [[unlikely]]
      fail("a pointer beyond its end");
    return {at, segment_[at]};
  }
  /// The pointer `index` of a struct; null beyond those that it has.
  [[nodiscard]] detail::PointerRef pointer(const detail::StructView& view,
                                           std::uint32_t index) const noexcept {
    if (index >= view.pointer_count) return {};
    return {view.first_pointer + index, segment_[view.first_pointer + index]};
  }

  /// The struct behind `pointer`. A data section that is shorter than `expected` is copied to
  /// `room` (as many words as `expected` has) and zeroes follow it.
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

  /// The list behind `pointer`, whose elements are of size `expected`, or structs that begin with
  /// such a field; for `composite` also a list of the struct's first field. Charges the larger of
  /// what it takes on the wire and `memory` bytes an element.
  [[nodiscard]] BATCHRPC_EXPORT detail::ListView list(detail::PointerRef pointer,
                                                      detail::ElementSize expected,
                                                      std::size_t memory);

  /// Element `index` of a list of structs; `room` as in `structure`.
  [[nodiscard]] BATCHRPC_EXPORT detail::StructView element(const detail::ListView& list,
                                                           std::uint32_t index,
                                                           detail::StructSize expected,
                                                           Word* room) const;

  /// Element `index` of a list of pointers.
  [[nodiscard]] detail::PointerRef pointer_element(const detail::ListView& list,
                                                   std::uint32_t index) const noexcept {
    std::size_t at = list.first + index;
    if (list.size == detail::ElementSize::composite) {
      at = list.first + index * list.element.words() + list.element.data;
    }
    return {at, segment_[at]};
  }

  /// The data section's first word of element `index` of a list of structs.
  [[nodiscard]] const Word* data_element(const detail::ListView& list,
                                         std::uint32_t index) const noexcept {
    return segment_.data() + list.first + index * list.element.words();
  }

  /// Text without its NUL; a view into the segment.
  [[nodiscard]] BATCHRPC_EXPORT std::string_view text(detail::PointerRef pointer);

  /// One level of nesting, for as long as this lives.
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
  // Wraps to a huge number when it points before the beginning.
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
