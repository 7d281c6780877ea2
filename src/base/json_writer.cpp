#include "base/json_writer.hpp"

namespace batchrpc {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

// How many bytes the character at the begin of `text` has; 0: it is not UTF-8 (RFC 3629, its table
// of well-formed sequences).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  if (first == 0xE0 && second < 0xA0) return 0;  // longer than need be
  if (first == 0xED && second > 0x9F) return 0;  // half a surrogate pair
  if (first == 0xF0 && second < 0x90) return 0;
  if (first == 0xF4 && second > 0x8F) return 0;  // above U+10FFFF
  return length;
}

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto code = static_cast<unsigned char>(c);
  out += "\\u00";
  out += kHexDigits[code >> 4];
  out += kHexDigits[code & 15];
}

}  // namespace

void JsonWriter::value(std::string_view text) {
  separate();
  out_ += '"';
  std::size_t written = 0;
  std::size_t i = 0;
  const auto write_before = [&] { out_ += text.substr(written, i - written); };
  while (i < text.size()) {
    const char c = text[i];
    const bool escaped = static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
    const std::size_t length = escaped ? 1 : utf8_length(text.substr(i));
    if (escaped || length == 0) {
      write_before();
      if (escaped) {
        append_escaped(out_, c);
      } else {
        out_ += "\xEF\xBF\xBD";
      }
      written = ++i;
    } else {
      i += length;
    }
  }
  write_before();
  out_ += '"';
}

void JsonWriter::thousandths(std::int64_t number) {
  separate();
  // Not by negating it, which the smallest number cannot be.
  const std::uint64_t size =
      number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  char text[32];
  char* end = text;
  if (number < 0) *end++ = '-';
  end = std::to_chars(end, text + sizeof text, size / 1000).ptr;
  *end++ = '.';
  *end++ = static_cast<char>('0' + size / 100 % 10);
  *end++ = static_cast<char>('0' + size / 10 % 10);
  *end++ = static_cast<char>('0' + size % 10);
  out_.append(text, end);
}

}  // namespace batchrpc
