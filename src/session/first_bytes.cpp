#include "session/first_bytes.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace batchrpc {
namespace {

constexpr std::array<std::string_view, 10> kOfHttp{"GET ",    "HEAD ",       "POST ",   "PUT ",
                                                   "DELETE ", "PATCH ",      "OPTIONS", "CONNECT",
                                                   "TRACE ",  "PRI * HTTP/2"};

/// Names the kind of the bytes, with an article; empty: it is unknown.
std::string_view kind_of(std::string_view text) {
  const auto is_first = [text](std::string_view word) { return text.starts_with(word); };
  if (std::any_of(kOfHttp.begin(), kOfHttp.end(), is_first)) return "an HTTP request";
  if (is_first("HTTP/")) return "an HTTP response";
  if (is_first("SSH-")) return "SSH";
  // The first message of a handshake record of TLS 1.0 or later.
  if (text.size() >= 6 && is_first("\x16\x03") && text[5] == 1) return "a TLS handshake";
  return {};
}

}  // namespace

std::string first_bytes_text(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "it sent nothing";
  bytes = bytes.first(std::min(bytes.size(), kFirstBytes));
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string numbers;
  std::string text;
  std::string raw;
  for (const std::byte byte : bytes) {
    const auto value = std::to_integer<unsigned>(byte);
    if (!numbers.empty()) numbers += ' ';
    numbers += kDigits[value >> 4];
    numbers += kDigits[value & 15];
    text += value >= 0x20 && value < 0x7f ? static_cast<char>(value) : '.';
    raw += static_cast<char>(value);
  }
  const std::string_view kind = kind_of(raw);
  std::string all = "it ";
  if (!kind.empty()) all += "looks like " + std::string(kind) + " and ";
  return all + "begins with " + numbers + " (" + text + ")";
}

}  // namespace batchrpc
