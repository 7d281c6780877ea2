#include "batchrpc/wire/decoder.hpp"

#include <algorithm>
#include <string>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

using detail::ElementSize;
using detail::ListView;
using detail::PointerRef;
using detail::StructSize;
using detail::StructView;

constexpr unsigned kStructTag = 0;
constexpr unsigned kListTag = 1;
constexpr unsigned kFarTag = 2;

StructSize struct_size(Word pointer) noexcept {
  return {static_cast<std::uint16_t>(pointer >> 32), static_cast<std::uint16_t>(pointer >> 48)};
}

void require_tag(Word pointer, unsigned expected) {
  const unsigned tag = pointer & 3U;
  if (tag == expected) return;
  if (tag == kFarTag) Decoder::fail("a pointer to another segment");
  if (tag > kFarTag) Decoder::fail("a capability, which is not data");
  Decoder::fail(expected == kListTag ? "a struct where a list belongs"
                                     : "a list where a struct belongs");
}

}  // namespace

void Decoder::fail(std::string_view what) {
  throw BadMessage("a message cannot be decoded: it has " + std::string(what));
}

void Decoder::charge_payload(std::size_t bytes) {
  if (payload_bytes_ == 0 && !payload_limit_known_) {
    for (const Bytes& payload : payloads_)
      payload_bytes_ += payload.size();
  }
  payload_limit_known_ = true;
  if (bytes > payload_bytes_) fail("more payload bytes to copy than the limit allows");
  payload_bytes_ -= bytes;
}

StructView Decoder::other_structure(PointerRef pointer, StructSize expected, Word* room) {
  StructView view{room, 0, 0};
  if (pointer.word == 0) {
    std::fill_n(room, expected.data, Word{0});
    return view;
  }
  require_tag(pointer.word, kStructTag);
  const StructSize actual = struct_size(pointer.word);
  const std::uint64_t target = target_of(pointer);
  check_bounds(target, actual.words());
  charge(actual.words());
  view.first_pointer = static_cast<std::size_t>(target + actual.data);
  view.pointer_count = actual.pointers;
  const Word* data = segment_.data() + target;
  if (actual.data >= expected.data) {
    view.data = data;
  } else {
    std::fill(std::copy_n(data, actual.data, room), room + expected.data, Word{0});
  }
  return view;
}

ListView Decoder::list(PointerRef pointer, ElementSize expected, std::size_t memory) {
  ListView list;
  list.size = expected;
  if (pointer.word == 0) return list;
  require_tag(pointer.word, kListTag);
  const std::uint64_t target = target_of(pointer);
  list.size = static_cast<ElementSize>((pointer.word >> 32) & 7U);
  std::uint64_t count = pointer.word >> 35;
  std::uint64_t words = 0;
  if (list.size == ElementSize::composite) {
    words = count + 1;  // for the tag
    check_bounds(target, words);
    const Word tag = segment_[static_cast<std::size_t>(target)];
    require_tag(tag, kStructTag);
    list.element = struct_size(tag);
    count = static_cast<std::uint32_t>(tag) >> 2;
    if (count * list.element.words() > words - 1)
      fail("a list with more elements than it has room for");
    list.first = static_cast<std::size_t>(target) + 1;
  } else {
    words = (count * bits_of(list.size) + 63) / 64;
    check_bounds(target, words);
    list.first = static_cast<std::size_t>(target);
  }
  list.count = static_cast<std::uint32_t>(count);

  // A struct is accepted where its first field is expected, and the other way round, except for
  // bits.
  bool fits = list.size == expected;
  if (!fits && list.size == ElementSize::composite) {
    fits =
        expected == ElementSize::none ||
        (expected == ElementSize::pointer && list.element.pointers > 0) ||
        (expected != ElementSize::bit && expected != ElementSize::pointer && list.element.data > 0);
  } else if (!fits) {
    fits = expected == ElementSize::composite && list.size != ElementSize::bit;
  }
  if (!fits) fail("a list with elements of another size");

  // An element without a size on the wire costs one word, as in Cap'n Proto.
  const bool sizeless = list.size == ElementSize::none ||
                        (list.size == ElementSize::composite && list.element.words() == 0);
  const std::uint64_t in_memory = (count * memory + 7) / 8;
  charge(std::max({words, in_memory, sizeless ? count : 0}));
  return list;
}

StructView Decoder::element(const ListView& list, std::uint32_t index, StructSize expected,
                            Word* room) const {
  if (list.size == ElementSize::composite) {
    const std::size_t at = list.first + index * list.element.words();
    StructView view{segment_.data() + at, at + list.element.data, list.element.pointers};
    if (list.element.data < expected.data) {
      std::fill(std::copy_n(view.data, list.element.data, room), room + expected.data, Word{0});
      view.data = room;
    }
    return view;
  }
  std::fill_n(room, expected.data, Word{0});
  if (list.size == ElementSize::pointer) return {room, list.first + index, 1};
  const auto bytes = static_cast<std::size_t>(bits_of(list.size) / 8);
  if (expected.data > 0 && bytes > 0) {
    std::memcpy(room,
                reinterpret_cast<const std::byte*>(segment_.data() + list.first) + index * bytes,
                bytes);
  }
  return {room, 0, 0};
}

std::string_view Decoder::text(PointerRef pointer) {
  if (pointer.word == 0) return {};
  const ListView bytes = list(pointer, ElementSize::byte, 1);
  if (bytes.size != ElementSize::byte) fail("structs where text belongs");
  const std::string_view text(reinterpret_cast<const char*>(segment_.data() + bytes.first),
                              bytes.count);
  if (text.empty() || text.back() != '\0') fail("text that does not end with a NUL");
  return text.substr(0, text.size() - 1);
}

}  // namespace batchrpc
