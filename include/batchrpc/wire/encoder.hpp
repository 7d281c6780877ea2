#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/wire/delivery_hook.hpp"
#include "batchrpc/wire/layout.hpp"

namespace batchrpc {

/// The unit of a Cap'n Proto message.
using Word = std::uint64_t;

namespace detail {

/// How a list's elements are stored. The numbers are Cap'n Proto's.
enum class ElementSize : std::uint8_t {
  none = 0,
  bit = 1,
  byte = 2,
  two_bytes = 3,
  four_bytes = 4,
  eight_bytes = 5,
  pointer = 6,
  composite = 7,
};

/// The bits of an element in its list; none if it has no fixed size.
constexpr std::uint64_t bits_of(ElementSize size) noexcept {
  constexpr std::uint64_t bits[] = {0, 1, 8, 16, 32, 64, 64, 0};
  return bits[static_cast<std::size_t>(size)];
}

/// Writes `raw` into a data section at `offset`, in units of its size.
template <class Raw>
inline void store(Word* data, std::uint32_t offset, Raw raw) noexcept {
  if constexpr (sizeof(Raw) == sizeof(Word)) {
    data[offset] = static_cast<Word>(raw);
  } else {
    std::memcpy(reinterpret_cast<std::byte*>(data) + std::size_t{offset} * sizeof(Raw), &raw,
                sizeof(Raw));
  }
}
inline void store(Word* data, std::uint32_t offset, bool raw) noexcept {
  data[offset / 64] |= Word{raw} << (offset % 64);
}

}  // namespace detail

/// Builds one single-segment Cap'n Proto message by appending, in one pass. Positions are indices
/// into `words()`, which may move while it grows. Not thread-safe. Can be reused with reset().
///
/// The members that write pointers, text and lists serve the codecs of this layer. A user's codec
/// needs at most `add_payload`. They throw InvalidArgument if the message exceeds Cap'n Proto's
/// limits: 2^29 words (4 GiB) per message and 2^29 - 1 elements per list.
class Encoder {
 public:
  /// The first `reserved_words` words are zero and belong to the caller, for the envelope.
  explicit Encoder(std::size_t reserved_words = 0) : words_(reserved_words) {}

  /// Clears the encoder, but keeps its memory.
  void reset(std::size_t reserved_words) {
    words_.resize(reserved_words);
    std::fill(words_.begin(), words_.end(), 0);
    drop_payloads();
  }
  /// Drops the payloads and delivery hooks.
  void drop_payloads() noexcept {
    if (!payloads_.empty()) payloads_.clear();
    if (!delivery_hooks_.empty()) delivery_hooks_.clear();
  }

  /// The words of the segment so far.
  /// @{
  [[nodiscard]] std::vector<Word>& words() noexcept { return words_; }
  [[nodiscard]] const std::vector<Word>& words() const noexcept { return words_; }
  /// @}

  /// Adds bytes that are sent with the message from their own memory. Returns the index by which
  /// the decoder finds them.
  std::uint32_t add_payload(Bytes bytes) {
    payloads_.push_back(std::move(bytes));
    return static_cast<std::uint32_t>(payloads_.size() - 1);
  }

  /// The payloads, by index.
  /// @{
  [[nodiscard]] std::vector<Bytes>& payloads() noexcept { return payloads_; }
  [[nodiscard]] const std::vector<Bytes>& payloads() const noexcept { return payloads_; }
  /// @}

  /// Adds a hook. The codec of a remote reference uses it to count the messages that carry the
  /// reference. Such a message can be sent only once.
  void add_delivery_hook(std::shared_ptr<DeliveryHook> delivery_hooks) {
    delivery_hooks_.push_back(std::move(delivery_hooks));
  }
  /// The message's hooks. The sender of the message takes them over.
  [[nodiscard]] std::vector<std::shared_ptr<DeliveryHook>>& delivery_hooks() noexcept {
    return delivery_hooks_;
  }
  [[nodiscard]] bool one_use() const noexcept {
    return !delivery_hooks_.empty();
  }  ///< whether the message has hooks

  /// Appends a zeroed struct, sets the pointer at `pointer` to it, and returns its position.
  std::size_t add_struct(std::size_t pointer, detail::StructSize size) {
    if (size.words() == 0) {
      words_[pointer] = 0xfffffffcU;  // Cap'n Proto's pointer to an empty struct
      return words_.size();
    }
    const std::size_t at = grow(size.words());
    words_[pointer] =
        Word{static_cast<std::uint32_t>((at - pointer - 1) << 2)} | (Word{size.bits()} << 32);
    return at;
  }

  /// Appends zeroed room for `count` elements that are not structs. Returns its position.
  BATCHRPC_EXPORT std::size_t add_list(std::size_t pointer, detail::ElementSize size,
                                       std::size_t count);
  /// The same for structs. Returns the position of the first one.
  BATCHRPC_EXPORT std::size_t add_structs(std::size_t pointer, std::size_t count,
                                          detail::StructSize size);
  /// Appends a list of `count` elements whose memory is identical to their wire form.
  BATCHRPC_EXPORT void add_block(std::size_t pointer, detail::ElementSize size,
                                 const void* elements, std::size_t count, std::size_t bytes);
  /// Appends text and its NUL, and sets the pointer at `pointer` to it.
  BATCHRPC_EXPORT void add_text(std::size_t pointer, std::string_view text);

 private:
  std::size_t grow(std::size_t count) {
    const std::size_t at = words_.size();
    words_.resize(at + count);
    if (words_.size() > kMaxWords) too_large();
    return at;
  }
  void check_list(std::size_t count, std::size_t words) const;
  [[noreturn]] BATCHRPC_EXPORT static void too_large();

  static constexpr std::size_t kMaxWords = std::size_t{1} << 29;

  std::vector<Word> words_;
  std::vector<Bytes> payloads_;
  std::vector<std::shared_ptr<DeliveryHook>> delivery_hooks_;
};

}  // namespace batchrpc
