// Every type through the codec, and through the codec beside Cap'n Proto itself: the schema that we
// print, compiled by its tool, read and written by its reflection. In one file and one test case a
// type, for what a type instantiates takes longest to compile.

#include "wire/every_type.hpp"

#include <catch2/catch.hpp>

#include "batchrpc/wire/schema.hpp"
#include "wire/capnp_values.hpp"
#include "wire/one_segment.hpp"

namespace batchrpc {
namespace every_type_test {

using namespace wire_test;

/// The arguments before and after the one that is looked at.
struct Neighbours {
  explicit Neighbours(Random& random)
      : before(make<bool>(random)), after(make<std::int16_t>(random)) {}

  template <class T>
  bool are_in(const std::tuple<bool, T, std::int16_t>& all) const {
    return std::get<0>(all) == before && std::get<2>(all) == after;
  }

  bool before;
  std::int16_t after;
};

bool matches_neighbours(const Neighbours& neighbours, const capnp::DynamicStruct::Reader& root) {
  return matches(neighbours.before, root.get("arg0"), {}) &&
         matches(neighbours.after, root.get("arg2"), {});
}

/// A struct in small segments with pointers between them, which one_segment() takes out.
class Writing {
 public:
  Writing(capnp::StructSchema schema, unsigned segment_words)
      : schema_(schema),
        builder_(segment_words, capnp::AllocationStrategy::FIXED_SIZE),
        root_(builder_.initRoot<capnp::DynamicStruct>(schema)) {}

  Place place(const char* field) { return {root_, schema_.getFieldByName(field)}; }
  std::vector<Word> words() {
    const auto flat = capnp::messageToFlatArray(builder_);
    return test::one_segment({reinterpret_cast<const std::byte*>(flat.begin()), flat.size() * 8});
  }
  std::vector<Bytes> payloads;

 private:
  capnp::StructSchema schema_;
  capnp::MallocMessageBuilder builder_;
  capnp::DynamicStruct::Builder root_;
};

template <class T>
bool comes_back(const T& value, const Neighbours& neighbours) {
  const auto all = round_trip(neighbours.before, value, neighbours.after);
  return neighbours.are_in(all) && identical(std::get<1>(all), value);
}

template <class T>
bool read_by_capnp(const T& value, const Neighbours& neighbours, capnp::StructSchema schema) {
  Encoder encoder(1);
  encode_struct(encoder, 0, neighbours.before, value, neighbours.after);
  CapnpReader reader(encoder.words());
  const auto root = reader.root(schema);
  return matches_neighbours(neighbours, root) &&
         matches(value, root.get("arg1"), encoder.payloads());
}

template <class T>
bool written_by_capnp(const T& value, const Neighbours& neighbours, Writing& writing) {
  put(neighbours.before, writing.place("arg0"), writing.payloads);
  put(value, writing.place("arg1"), writing.payloads);
  put(neighbours.after, writing.place("arg2"), writing.payloads);
  const auto words = writing.words();
  Decoder decoder(words, writing.payloads);
  const auto all = decode_struct<bool, T, std::int16_t>(decoder, 0);
  return neighbours.are_in(all) && identical(std::get<1>(all), value);
}

TEMPLATE_LIST_TEST_CASE("every type comes back as it was sent, and is what Cap'n Proto makes of it",
                        "[codec][capnp]", EveryType) {
  Random random(20261121);
  bool came_back = true;
  for (int i = 0; i < 200; ++i)
    came_back = comes_back(make<TestType>(random), Neighbours(random)) && came_back;
  CHECK(came_back);

  const CompiledSchema schemas(schema_text<void, bool, TestType, std::int16_t>("f"));
  const auto schema = schemas.at("Arguments");
  bool read = true;
  bool written = true;
  for (int i = 0; i < 30; ++i) {
    const Neighbours neighbours(random);
    const auto value = make<TestType>(random);
    read = read_by_capnp(value, neighbours, schema) && read;
    Writing writing(schema, static_cast<unsigned>(1 + random.below(10)));
    written = written_by_capnp(value, neighbours, writing) && written;
  }
  CHECK(read);
  CHECK(written);
}

}  // namespace every_type_test
}  // namespace batchrpc
