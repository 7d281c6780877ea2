#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace batchrpc {

/// Appends two lower-case digits for each byte.
inline void append_hex(std::string& text, std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const unsigned byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
}
[[nodiscard]] inline std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  append_hex(text, bytes);
  return text;
}
/// The 16 lower-case digits of `number`.
[[nodiscard]] inline std::string hex(std::uint64_t number) {
  std::uint8_t bytes[8];
  for (std::size_t i = 8; i-- > 0; number >>= 8)
    bytes[i] = static_cast<std::uint8_t>(number);
  return hex(bytes);
}

}  // namespace batchrpc
