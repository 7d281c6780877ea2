#include "batchrpc/wire/layout.hpp"

#include <catch2/catch.hpp>

#include <string>

#include "wire/capnp_schema.hpp"
#include "wire/values.hpp"

namespace batchrpc {
namespace layout_test {

using detail::Slot;
using namespace wire_test;

constexpr std::size_t kFields = 14;
using Slots = std::array<Slot, kFields>;

Slots random_slots(Random& random) {
  constexpr Slot all[] = {Slot::bit,    Slot::bits8,   Slot::bits16, Slot::bits32,
                          Slot::bits64, Slot::pointer, Slot::none};
  Slots slots;
  for (Slot& slot : slots)
    slot = all[random.below(std::size(all))];
  return slots;
}

const char* type_of(Slot slot) {
  switch (slot) {
    case Slot::bit:
      return "Bool";
    case Slot::bits8:
      return "UInt8";
    case Slot::bits16:
      return "UInt16";
    case Slot::bits32:
      return "UInt32";
    case Slot::bits64:
      return "UInt64";
    case Slot::pointer:
      return "Text";
    case Slot::none:
      break;
  }
  return "Void";
}

std::string schema_of(const std::vector<Slots>& structs, bool as_union) {
  std::string text = "@0xbf5147cbbecf40c1;\n";
  for (std::size_t i = 0; i < structs.size(); ++i) {
    text += "struct S" + std::to_string(i) + " {" + (as_union ? "union {" : "");
    for (std::size_t j = 0; j < kFields; ++j) {
      text +=
          " f" + std::to_string(j) + " @" + std::to_string(j) + " :" + type_of(structs[i][j]) + ";";
    }
    text += as_union ? "}}\n" : "}\n";
  }
  return text;
}

template <class Layout>
void compare(const Layout& layout, const Slots& slots, capnp::StructSchema schema) {
  const auto node = schema.getProto().getStruct();
  REQUIRE(layout.size.data == node.getDataWordCount());
  REQUIRE(layout.size.pointers == node.getPointerCount());
  for (capnp::uint j = 0; j < kFields; ++j) {
    if (slots[j] == Slot::none) continue;
    REQUIRE(layout.offsets[j] == schema.getFields()[j].getProto().getSlot().getOffset());
  }
}

TEST_CASE("fields lie where Cap'n Proto's compiler puts them", "[layout]") {
  Random random(1);
  std::vector<Slots> structs(200);
  for (Slots& slots : structs)
    slots = random_slots(random);
  const CompiledSchema schema(schema_of(structs, false));
  for (std::size_t i = 0; i < structs.size(); ++i) {
    compare(detail::struct_layout(structs[i]), structs[i], schema.at("S" + std::to_string(i)));
  }
}

TEST_CASE("alternatives of a union lie where Cap'n Proto's compiler puts them", "[layout]") {
  Random random(2);
  std::vector<Slots> structs(300);
  for (Slots& slots : structs)
    slots = random_slots(random);
  const CompiledSchema schema(schema_of(structs, true));
  for (std::size_t i = 0; i < structs.size(); ++i) {
    const auto layout = detail::union_layout(structs[i]);
    const auto at = schema.at("S" + std::to_string(i));
    compare(layout, structs[i], at);
    REQUIRE(layout.discriminant == at.getProto().getStruct().getDiscriminantOffset());
  }
}

TEST_CASE("layouts are known at compile time", "[layout]") {
  constexpr auto layout = detail::struct_layout(
      std::array{Slot::bit, Slot::bits32, Slot::bits8, Slot::bit, Slot::pointer});
  static_assert(layout.size == detail::StructSize{1, 1});
  static_assert(layout.offsets == std::array<std::uint32_t, 5>{0, 1, 1, 1, 0});
  static_assert(detail::struct_layout(std::array<Slot, 0>{}).size == detail::StructSize{});
  SUCCEED();
}

}  // namespace layout_test
}  // namespace batchrpc
