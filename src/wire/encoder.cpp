#include "batchrpc/wire/encoder.hpp"

#include <bit>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are written to the wire, which is little-endian, as they are in memory");

using detail::ElementSize;
using detail::StructSize;

constexpr std::size_t kMaxElements = (std::size_t{1} << 29) - 1;

constexpr Word list_pointer(std::size_t pointer, std::size_t at, ElementSize size,
                            std::size_t count) noexcept {
  return Word{1} | Word{static_cast<std::uint32_t>((at - pointer - 1) << 2)} |
         (Word{static_cast<std::uint8_t>(size)} << 32) | (Word{count} << 35);
}

}  // namespace

DeliveryHook::~DeliveryHook() = default;

void Encoder::too_large() {
  throw InvalidArgument(
      "a message's arguments or result exceed 4 GiB, or a list in them exceeds 2^29 - 1 "
      "elements; send large data as Bytes or in several calls");
}

void Encoder::check_list(std::size_t count, std::size_t words) const {
  if (count > kMaxElements || words_.size() + words > kMaxWords) too_large();
}

std::size_t Encoder::add_list(std::size_t pointer, ElementSize size, std::size_t count) {
  check_list(count, 0);
  const std::size_t words = (count * bits_of(size) + 63) / 64;
  check_list(count, words);
  const std::size_t at = grow(words);
  words_[pointer] = list_pointer(pointer, at, size, count);
  return at;
}

std::size_t Encoder::add_structs(std::size_t pointer, std::size_t count, StructSize size) {
  check_list(count, 0);
  const std::size_t words = count * size.words();
  check_list(words, words + 1);
  const std::size_t at = grow(words + 1);
  words_[pointer] = list_pointer(pointer, at, ElementSize::composite, words);
  words_[at] = Word{static_cast<std::uint32_t>(count << 2)} | (Word{size.bits()} << 32);
  return at + 1;
}

void Encoder::add_block(std::size_t pointer, ElementSize size, const void* elements,
                        std::size_t count, std::size_t bytes) {
  check_list(count, (bytes + 7) / 8);
  const std::size_t at = words_.size();
  words_.resize(at + (bytes + 7) / 8);
  if (bytes != 0) std::memcpy(&words_[at], elements, bytes);
  words_[pointer] = list_pointer(pointer, at, size, count);
}

void Encoder::add_text(std::size_t pointer, std::string_view text) {
  check_list(text.size() + 1, text.size() / 8 + 1);
  const std::size_t at = words_.size();
  words_.resize(at + text.size() / 8 + 1);  // one of the zeros is the NUL
  if (!text.empty()) std::memcpy(&words_[at], text.data(), text.size());
  words_[pointer] = list_pointer(pointer, at, ElementSize::byte, text.size() + 1);
}

}  // namespace batchrpc
