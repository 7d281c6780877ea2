#include "status/access.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/random_secret.hpp"
#include "batchrpc/base/error.hpp"
#include "status/ascii.hpp"

namespace batchrpc::status {
namespace {

constexpr std::size_t kShortest = 16;
constexpr std::size_t kLongest = 1024;
constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The characters of a bearer token (RFC 6750, 2.1).
bool is_token_character(char letter) noexcept {
  return kBase64.find(letter) != std::string_view::npos || letter == '-' || letter == '.' ||
         letter == '_' || letter == '~' || letter == '=';
}

Secret random_key() {
  RandomBits random;
  return random_secret(random);
}

// Returns what follows the name of a scheme, which is in lower case here.
std::optional<std::string_view> credentials(std::string_view authorization,
                                            std::string_view scheme) noexcept {
  const bool has_scheme = authorization.size() > scheme.size() &&
                          authorization[scheme.size()] == ' ' &&
                          std::equal(scheme.begin(), scheme.end(), authorization.begin(),
                                     [](char small, char any) { return small == lower(any); });
  if (!has_scheme) return std::nullopt;
  authorization.remove_prefix(scheme.size());
  return authorization.substr(std::min(authorization.find_first_not_of(' '), authorization.size()));
}

std::optional<std::string> from_base64(std::string_view text) {
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding)
    text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char letter : text) {
    const std::size_t value = kBase64.find(letter);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xffU);
  }
  return bytes;
}

}  // namespace

Access::Access(std::string_view token)
    : is_open_(token.empty()), key_(random_key()), expected_(derive_secret(key_, token)) {
  const bool is_short = !token.empty() && token.size() < kShortest;
  if (is_short || token.size() > kLongest ||
      !std::all_of(token.begin(), token.end(), is_token_character)) {
    throw InvalidArgument(
        "the token of a status page has fewer than " + std::to_string(kShortest) +
        " characters or more than " + std::to_string(kLongest) +
        ", or others than letters, digits and -._~+/= (a line end, if it was read from "
        "a file?); make one with: openssl rand -hex 32");
  }
}

bool Access::allows(std::string_view authorization) const {
  if (is_open_) return true;
  if (const auto token = credentials(authorization, "bearer")) return is_token(*token);
  const auto basic = credentials(authorization, "basic");
  if (!basic) return false;
  const auto decoded = from_base64(*basic);
  if (!decoded) return false;
  const std::size_t colon = decoded->find(':');
  return colon != std::string::npos && is_token(std::string_view(*decoded).substr(colon + 1));
}

bool Access::is_token(std::string_view text) const noexcept {
  return derive_secret(key_, text) == expected_;
}

}  // namespace batchrpc::status
