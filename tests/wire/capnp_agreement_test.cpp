// The codec beside Cap'n Proto itself: the schema that we print, compiled by its tool, read and
// written by its reflection.

#include <catch2/catch.hpp>

#include "batchrpc/wire/schema.hpp"
#include "wire/capnp_values.hpp"
#include "wire/every_type.hpp"
#include "wire/one_segment.hpp"

namespace batchrpc {
namespace {

using namespace wire_test;

TEMPLATE_LIST_TEST_CASE("Cap'n Proto reads what the codec wrote, and the other way round",
                        "[capnp]", EveryType) {
  const CompiledSchema schemas(schema_text<void, bool, TestType, std::int16_t>("f"));
  const auto schema = schemas.at("Arguments");
  Random random(7);
  for (int i = 0; i < 30; ++i) {
    const auto before = make<bool>(random);
    const auto value = make<TestType>(random);
    const auto after = make<std::int16_t>(random);

    Encoder encoder(1);
    encode_struct(encoder, 0, before, value, after);
    CapnpReader reader(encoder.words());
    const auto root = reader.root(schema);
    REQUIRE(matches(before, root.get("arg0"), encoder.payloads()));
    REQUIRE(matches(value, root.get("arg1"), encoder.payloads()));
    REQUIRE(matches(after, root.get("arg2"), encoder.payloads()));

    // Small segments: pointers between them, which one_segment() takes out.
    capnp::MallocMessageBuilder builder(static_cast<unsigned>(1 + random.below(10)),
                                        capnp::AllocationStrategy::FIXED_SIZE);
    const auto written = builder.initRoot<capnp::DynamicStruct>(schema);
    std::vector<Bytes> payloads;
    put(before, Place(written, schema.getFieldByName("arg0")), payloads);
    put(value, Place(written, schema.getFieldByName("arg1")), payloads);
    put(after, Place(written, schema.getFieldByName("arg2")), payloads);
    const auto flat = capnp::messageToFlatArray(builder);
    const auto words =
        test::one_segment({reinterpret_cast<const std::byte*>(flat.begin()), flat.size() * 8});
    Decoder decoder(words, payloads);
    const auto [a, b, c] = decode_struct<bool, TestType, std::int16_t>(decoder, 0);
    REQUIRE(a == before);
    REQUIRE(identical(b, value));
    REQUIRE(c == after);
  }
}

}  // namespace
}  // namespace batchrpc
