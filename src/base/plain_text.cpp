#include "base/plain_text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "base/utf8.hpp"

namespace batchrpc {
namespace {

constexpr std::string_view kCut = "...";

bool is_plain_ascii(char c) noexcept { return c >= 0x20 && c < 0x7f; }

/// Returns the character that `bytes` encode, which must be UTF-8.
std::uint32_t code_point(std::string_view bytes) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.size() == 1) return byte(0);
  std::uint32_t code = byte(0) & (0xFFU >> (bytes.size() + 1));
  for (std::size_t i = 1; i < bytes.size(); ++i)
    code = code << 6 | (byte(i) & 0x3FU);
  return code;
}

bool is_plain(std::uint32_t code) noexcept {
  const auto within = [code](std::uint32_t first, std::uint32_t last) {
    return code >= first && code <= last;
  };
  if (code < 0x20 || within(0x7F, 0x9F)) return false;         // control characters
  if (within(0x2028, 0x2029)) return false;                    // line and paragraph separator
  return !(code == 0x061C || within(0x200E, 0x200F) ||         // marks of direction
           within(0x202A, 0x202E) || within(0x2066, 0x2069));  // embeddings and isolates
}

/// A character at the begin of a text.
struct Found {
  std::size_t length;  // in bytes
  bool plain;
  std::uint32_t code;  // the byte, if it is not UTF-8
  bool utf8;
};

Found first_of(std::string_view text) noexcept {
  if (is_plain_ascii(text.front())) return {1, true, 0, true};
  const std::size_t length = utf8_length(text);
  if (length == 0) return {1, false, static_cast<unsigned char>(text.front()), false};
  const std::uint32_t code = code_point(text.substr(0, length));
  return {length, is_plain(code), code, true};
}

std::string escape_of(const Found& found) {
  if (found.code == '\n') return "\\n";
  if (found.code == '\r') return "\\r";
  if (found.code == '\t') return "\\t";
  char text[16];
  const bool is_byte = !found.utf8 || found.code < 0x80;
  std::snprintf(text, sizeof text, is_byte ? "\\x%02x" : "\\u%04x",
                static_cast<unsigned>(found.code));
  return text;
}

template <class Keep>
std::string escape(std::string_view text, std::size_t most_bytes, const Keep& keep) {
  std::string out;
  out.reserve(std::min(text.size(), most_bytes));
  std::size_t whole = 0;  // the longest part of `out` that leaves room for kCut
  while (!text.empty()) {
    const Found found = first_of(text);
    if (found.plain || keep(found)) {
      out += text.substr(0, found.length);
    } else {
      out += escape_of(found);
    }
    if (out.size() > most_bytes) {
      out.resize(whole);
      return out.append(kCut.substr(0, most_bytes - whole));
    }
    if (out.size() + kCut.size() <= most_bytes) whole = out.size();
    text.remove_prefix(found.length);
  }
  return out;
}

}  // namespace

bool is_plain_text(std::string_view text) noexcept {
  while (!text.empty()) {
    const Found found = first_of(text);
    if (!found.plain) return false;
    text.remove_prefix(found.length);
  }
  return true;
}

std::string escaped(std::string_view text, std::size_t most_bytes) {
  return escape(text, most_bytes, [](const Found& /*found*/) { return false; });
}

std::string escaped_lines(std::string_view text, std::size_t most_bytes) {
  return escape(text, most_bytes,
                [](const Found& found) { return found.code == '\n' || found.code == '\t'; });
}

std::string without_stack(std::string text) {
  // A line that begins so, and lines of frames.
  const std::size_t stack = text.find("\nException raised from ");
  if (stack == std::string::npos) return text;
  std::size_t end = text.find('\n', stack + 1);
  while (end != std::string::npos && text.compare(end + 1, 7, "frame #") == 0)
    end = text.find('\n', end + 1);
  text.erase(stack, (end == std::string::npos ? text.size() : end + 1) - stack);
  return text;
}

}  // namespace batchrpc
