#include "batchrpc/wire/schema.hpp"

#include <catch2/catch.hpp>

#include <map>

#include "batchrpc/base/error.hpp"
#include "wire/capnp_schema.hpp"
#include "wire/one_segment.hpp"
#include "wire/values.hpp"

namespace batchrpc {
namespace schema_test {

struct Named {
  int value;
};
struct Comment {
  std::string text;
  std::vector<Comment> replies;
};

}  // namespace schema_test

template <>
struct Codec<schema_test::Named> {
  using Wire = std::tuple<int, std::string>;
  static Wire encode(const schema_test::Named& named) { return {named.value, "x"}; }
  static schema_test::Named decode(Wire&& wire) { return {std::get<0>(wire)}; }
  static constexpr std::string_view name = "my.named_type";
};

namespace {

using namespace wire_test;
using schema_test::Comment;
using schema_test::Named;

std::string without_id(const std::string& text) { return text.substr(text.find('\n') + 1); }

TEST_CASE("a schema has a struct for the arguments and one for the result", "[schema]") {
  CHECK(without_id(schema_text<int, int, double, std::string>("add")) ==
        "# add: i32(i32,f64,str)\n"
        "\n"
        "struct Arguments {\n"
        "  arg0 @0 :Int32;\n"
        "  arg1 @1 :Float64;\n"
        "  arg2 @2 :Text;\n"
        "}\n"
        "\n"
        "struct Result {\n"
        "  result @0 :Int32;\n"
        "}\n");
  CHECK(without_id(schema_text<void>("nothing")) ==
        "# nothing: void()\n\nstruct Arguments {\n}\n\nstruct Result {\n}\n");
}

TEST_CASE("types that are alike share a struct, whose name is that of the codec or of the kind",
          "[schema]") {
  const std::string text =
      schema_text<std::pair<int, double>, Point, std::vector<Point>, std::optional<Point>,
                  std::variant<int, std::string>, std::map<std::string, Bytes>, Named>("f");
  CHECK(without_id(text) ==
        "# f: "
        "{i32,f64}({i32,f64},[{i32,f64}],{i32,f64}?,(i32|str),map(str,bytes),my.named_type<{i32,"
        "str}>)\n"
        "\n"
        "struct Arguments {\n"
        "  arg0 @0 :Struct1;\n"
        "  arg1 @1 :List(Struct1);\n"
        "  arg2 @2 :Optional1;\n"
        "  arg3 @3 :Variant1;\n"
        "  arg4 @4 :List(Entry1);\n"
        "  arg5 @5 :MyNamedType;\n"
        "}\n"
        "\n"
        "struct Struct1 {\n"
        "  field0 @0 :Int32;\n"
        "  field1 @1 :Float64;\n"
        "}\n"
        "\n"
        "struct Optional1 {\n"
        "  union {\n"
        "    none @0 :Void;\n"
        "    some @1 :Struct1;\n"
        "  }\n"
        "}\n"
        "\n"
        "struct Variant1 {\n"
        "  union {\n"
        "    alternative0 @0 :Int32;\n"
        "    alternative1 @1 :Text;\n"
        "  }\n"
        "}\n"
        "\n"
        "struct Entry1 {\n"
        "  key @0 :Text;\n"
        "  value @1 :Bytes;\n"
        "}\n"
        "\n"
        "struct MyNamedType {\n"
        "  field0 @0 :Int32;\n"
        "  field1 @1 :Text;\n"
        "}\n"
        "\n"
        "struct Bytes {\n"
        "  union {\n"
        "    inline @0 :Data;\n"
        "    payload @1 :UInt32;  # an index among what travels beside the message\n"
        "  }\n"
        "  size @2 :UInt64;\n"
        "}\n"
        "\n"
        "struct Result {\n"
        "  result @0 :Struct1;\n"
        "}\n");
}

TEST_CASE("recursive types have recursive structs", "[schema]") {
  const std::string text = schema_text<Tree, Comment, Tree>("f");
  CHECK(text.find("struct Struct1 {\n  field0 @0 :Text;\n  field1 @1 :List(Struct1);\n}") !=
        std::string::npos);
  CHECK(text.find("struct Struct2 {\n  field0 @0 :Int32;\n  field1 @1 :List(Struct2);\n"
                  "  field2 @2 :Optional1;\n}") != std::string::npos);
  CHECK(text.find("some @1 :Struct2;") != std::string::npos);
  CHECK_NOTHROW(CompiledSchema(text));
}

TEST_CASE("a schema's id depends on the function's name and types alone", "[schema]") {
  const auto id = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  CHECK(id(schema_text<int, long>("f")) == id(schema_text<std::int32_t, long long>("f")));
  CHECK(id(schema_text<int, long>("f")) != id(schema_text<int, long>("g")));
  CHECK(id(schema_text<int, long>("f")) != id(schema_text<int, int>("f")));
}

TEST_CASE("a function's name cannot break out of its comment", "[schema]") {
  CHECK_NOTHROW(CompiledSchema(schema_text<int>("evil\nstruct {{{ \r name")));
}

TEST_CASE("what is no signature is refused", "[schema]") {
  for (const char* const text : {"", "i32", "i32(", "i32(x)", "i32([i32)", "i32(^1)", "i32({^9})",
                                 "i32(set(i32)", "i32(map(i32))x", "i32(dur(", "?()", "[^1]()"}) {
    INFO(text);
    CHECK_THROWS_AS(detail::schema_text(text, "f"), InvalidArgument);
  }
}

TEST_CASE("the capnp tool decodes arguments with the printed schema", "[schema]") {
  const TemporaryFile schema(
      schema_text<void, int, std::string, std::vector<float>, Point, std::optional<int>,
                  std::variant<int, std::string>, std::map<std::string, int>, Bytes>("f"));
  Encoder encoder(1);
  encode_struct(encoder, 0, -7, "hello", std::vector<float>{1.5F, -2}, Point{3, 0.25},
                std::optional<int>(4), std::variant<int, std::string>("alternative"),
                std::map<std::string, int>{{"a", 1}, {"b", 2}}, Bytes::copy(as_bytes("raw")));
  const TemporaryFile message(text_of(framed(encoder.words())));
  CHECK(capnp_tool("decode --short " + schema.path() + " Arguments < " + message.path()) ==
        "(arg0 = -7, arg1 = \"hello\", arg2 = [1.5, -2], arg3 = (field0 = 3, field1 = 0.25), "
        "arg4 = (some = 4), arg5 = (alternative1 = \"alternative\"), arg6 = [(key = \"a\", value = "
        "1), "
        "(key = \"b\", value = 2)], arg7 = (inline = \"raw\", size = 3))\n");
}

TEST_CASE("what the capnp tool encodes with the printed schema decodes", "[schema]") {
  const TemporaryFile schema(
      schema_text<void, int, std::vector<Point>, std::optional<std::string>, std::array<bool, 2>>(
          "f"));
  const TemporaryFile text(
      "(arg0 = 5, arg1 = [(field0 = 1, field1 = 2.5), (field1 = -inf)], arg2 = (some = \"there\"), "
      "arg3 = [true, false])");
  const std::string bytes = capnp_tool("encode " + schema.path() + " Arguments < " + text.path());
  const auto words = test::one_segment(as_bytes(bytes));
  Decoder decoder(words, {});
  const auto [a, b, c, d] =
      decode_struct<int, std::vector<Point>, std::optional<std::string>, std::array<bool, 2>>(
          decoder, 0);
  CHECK(a == 5);
  CHECK(identical(b, std::vector<Point>{{1, 2.5}, {0, -std::numeric_limits<double>::infinity()}}));
  CHECK(c == "there");
  CHECK(d == std::array<bool, 2>{true, false});
}

}  // namespace
}  // namespace batchrpc
