#include "base/json_writer.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace batchrpc {
namespace json_writer_test {

std::string written(const auto& value) {
  std::string out;
  JsonWriter(out).value(value);
  return out;
}

std::string thousandths(std::int64_t number) {
  std::string out;
  JsonWriter(out).thousandths(number);
  return out;
}

TEST_CASE("objects and arrays have commas where they belong") {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.member("a", 1);
  json.key("b");
  json.begin_array();
  json.value(true);
  json.begin_object();
  json.end_object();
  json.begin_array();
  json.end_array();
  json.raw("null");
  json.end_array();
  json.member("c", "text");
  json.end_object();
  CHECK(out == R"({"a":1,"b":[true,{},[],null],"c":"text"})");
}

TEST_CASE("what JSON does not let stand in a string is escaped") {
  CHECK(written("\"\\/\n\r\t") == R"("\"\\/\n\r\t")");
  CHECK(written(std::string("\0\x1f\x7f", 3)) == "\"\\u0000\\u001f\\u007f\"");
  CHECK(written("") == R"("")");
}

TEST_CASE("UTF-8 stays, and what is not becomes a replacement character") {
  CHECK(written("\u00e4\u20ac\U0001F600") == "\"\u00e4\u20ac\U0001F600\"");
  CHECK(written("a\xff"
                "b") == "\"a\uFFFDb\"");
  CHECK(written("\xc0\x80") == "\"\uFFFD\uFFFD\"");            // longer than need be
  CHECK(written("\xe0\x80\x80") == "\"\uFFFD\uFFFD\uFFFD\"");  // the same
  CHECK(written("\xed\xa0\x80") == "\"\uFFFD\uFFFD\uFFFD\"");  // half a surrogate pair
  CHECK(written("\xf4\x90\x80\x80").size() == 2 + 4 * 3);      // above U+10FFFF
  CHECK(written("\xe2\x82") == "\"\uFFFD\uFFFD\"");            // cut off
}

TEST_CASE("what a terminal would obey, and what changes the direction of text, is escaped") {
  CHECK(written("\x1b[2J\u009b2J") == R"("\u001b[2J\u009b2J")");
  CHECK(written("a\u202etxt\u2069\u2028") == R"("a\u202etxt\u2069\u2028")");
}

TEST_CASE("any bytes make a string that parses") {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 20, '\0');
    for (char& c : bytes)
      c = static_cast<char>(random() % 3 == 0 ? 0x80 | random() % 128 : random() % 256);
    const auto read = nlohmann::json::parse(written(bytes));
    REQUIRE(read.is_string());
    if (written(read.get<std::string>()) != written(bytes)) FAIL(written(bytes));
  }
}

TEST_CASE("numbers are written exactly") {
  CHECK(written(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(written(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(written(0.1) == "0.1");
  CHECK(written(1e300) == "1e+300");
  CHECK(written(std::numeric_limits<double>::infinity()) == "null");
  CHECK(written(std::numeric_limits<double>::quiet_NaN()) == "null");
  CHECK(written(false) == "false");
}

TEST_CASE("thousandths have three decimals") {
  CHECK(thousandths(0) == "0.000");
  CHECK(thousandths(7) == "0.007");
  CHECK(thousandths(1'234'567) == "1234.567");
  CHECK(thousandths(-50) == "-0.050");
  CHECK(thousandths(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775.808");
}

}  // namespace json_writer_test
}  // namespace batchrpc
