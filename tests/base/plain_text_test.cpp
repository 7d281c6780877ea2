#include "base/plain_text.hpp"

#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <string_view>

using batchrpc::escaped;
using batchrpc::escaped_lines;
using batchrpc::is_plain_text;
using namespace std::string_view_literals;

namespace plain_text_test {

constexpr std::size_t kAll = 1000;

TEST_CASE("Text of any language is plain, and remains as it is") {
  for (const std::string_view text :
       {""sv, "agent_7"sv, "a\\b 'c'"sv, "Grüße"sv, "日本"sv, "\xF0\x9F\x99\x82"sv, "עברית"sv}) {
    CHECK(is_plain_text(text));
    CHECK(escaped(text, kAll) == text);
    CHECK(escaped_lines(text, kAll) == text);
  }
}

TEST_CASE("Control characters are not plain, and are escaped") {
  CHECK(escaped("a\nb\tc\rd"sv, kAll) == "a\\nb\\tc\\rd");
  CHECK(escaped("\x1b[31mred\x07"sv, kAll) == "\\x1b[31mred\\x07");
  CHECK(escaped("\0\x7f"sv, kAll) == "\\x00\\x7f");
  CHECK(escaped("\xC2\x9B"sv, kAll) == "\\u009b");  // of one byte in some terminals, as ESC [
  CHECK(escaped("\xE2\x80\xA8"sv, kAll) == "\\u2028");
  for (const std::string_view text :
       {"\n"sv, "\t"sv, "a\0"sv, "\x7f"sv, "\xC2\x85"sv, "\xE2\x80\xA9"sv}) {
    CHECK_FALSE(is_plain_text(text));
  }
}

TEST_CASE("Characters that change the direction of text are not plain, and are escaped") {
  CHECK(escaped("a\xE2\x80\xAEtxt"sv, kAll) == "a\\u202etxt");
  for (const std::string_view text :
       {"\xD8\x9C"sv, "\xE2\x80\x8E"sv, "\xE2\x80\x8F"sv, "\xE2\x80\xAA"sv, "\xE2\x80\xAE"sv,
        "\xE2\x81\xA6"sv, "\xE2\x81\xA9"sv}) {
    CHECK_FALSE(is_plain_text(text));
    CHECK(is_plain_text(escaped(text, kAll)));
  }
  CHECK(is_plain_text("\xE2\x80\x8D"sv));  // joins the parts of an emoji
}

TEST_CASE("Bytes that are not UTF-8 are escaped one by one") {
  CHECK(escaped("a\xff\xC0\x80z"sv, kAll) == "a\\xff\\xc0\\x80z");
  CHECK(escaped("\xE2\x80"sv, kAll) == "\\xe2\\x80");
  CHECK_FALSE(is_plain_text("\xff"sv));
}

TEST_CASE("A text that is escaped twice is as if escaped once") {
  const std::string once = escaped("a\n\xff\xE2\x80\xAE\\"sv, kAll);
  CHECK(is_plain_text(once));
  CHECK(escaped(once, kAll) == once);
}

TEST_CASE("A text that is too long is cut between two characters or escapes") {
  CHECK(escaped("abcdef", 6) == "abcdef");
  CHECK(escaped("abcdefg", 6) == "abc...");
  CHECK(escaped("ab\n\n\n", 8) == "ab\\n\\n\\n");
  CHECK(escaped("ab\n\n\n\n", 8) == "ab\\n...");
  CHECK(escaped("aüüüü", 7) == "aü...");
  CHECK(escaped("abcdef", 2) == "..");
  CHECK(escaped("abcdef", 0).empty());
  CHECK(escaped(std::string(1 << 20, '\x1b'), 100).size() <= 100);
}

TEST_CASE("Line feeds and tabs can be kept") {
  CHECK(escaped_lines("a\n\tb\r\x1b\xff"sv, kAll) == "a\n\tb\\r\\x1b\\xff");
  CHECK(escaped_lines("ab\n\n\n\n", 5) == "ab...");
}

}  // namespace plain_text_test
