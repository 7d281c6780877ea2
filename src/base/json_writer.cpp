#include "base/json_writer.hpp"

#include "base/plain_text.hpp"
#include "base/utf8.hpp"

namespace batchrpc {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

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
    const bool is_escaped =
        static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\' || c == 0x7f;
    const std::size_t length = is_escaped ? 1 : utf8_length(text.substr(i));
    if (is_escaped || length == 0) {
      write_before();
      if (is_escaped) {
        append_escaped(out_, c);
      } else {
        out_ += kReplacement;
      }
      written = ++i;
    } else if (length > 1 && !is_plain_text(text.substr(i, length))) {
      // Whoever looks at the JSON with a terminal is to see what it says.
      constexpr std::size_t kLongestEscape = 6;
      write_before();
      out_ += escaped(text.substr(i, length), kLongestEscape);  // as JSON has it
      written = i += length;
    } else {
      i += length;
    }
  }
  write_before();
  out_ += '"';
}

void JsonWriter::thousandths(std::int64_t number) {
  separate();
  // Does not negate `number`, because the smallest number has no positive counterpart.
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
