#include "status/listen_address.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "batchrpc/base/error.hpp"
#include "status/ascii.hpp"

namespace batchrpc::status {
namespace {

constexpr std::string_view kDigits = "0123456789";

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw InvalidArgument(
      "the address '" + std::string(text) + "' of a status page " + why +
      "; write host:port, such as 127.0.0.1:8080, [::1]:8080 or :0 (loopback, any free port)");
}

bool is_same(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char one, char other) { return lower(one) == lower(other); });
}

}  // namespace

ListenAddress ListenAddress::parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) refuse(text, "has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    refuse(text, "does not end with a port from 0 to 65535");
  }
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) refuse(text, "has an opening bracket without a closing one");
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string_view::npos) refuse(text, "has no IPv6 address in brackets");
  } else if (host.find(':') != std::string_view::npos) {
    refuse(text, "has an IPv6 address without brackets, or is a URL");
  }
  const bool is_odd = std::any_of(host.begin(), host.end(), [](char letter) {
    return static_cast<unsigned char>(letter) <= ' ' || letter == '/' || letter == '[' ||
           letter == ']';
  });
  if (is_odd) refuse(text, "has an invalid host");
  if (host == "*")
    refuse(text, "has the host '*'; to listen on all interfaces, use 0.0.0.0 or [::]");
  return {.host = host.empty() ? "127.0.0.1" : std::string(host), .port = port};
}

std::string ListenAddress::to_string() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool is_own_host(std::string_view header, std::string_view host) noexcept {
  const std::size_t colon = header.rfind(':');
  if (colon != std::string_view::npos && !header.ends_with(']')) {
    const std::string_view port = header.substr(colon + 1);
    if (port.find_first_not_of(kDigits) != std::string_view::npos) return false;
    header = header.substr(0, colon);
  }
  constexpr std::array<std::string_view, 3> kLoopback{"localhost", "127.0.0.1", "[::1]"};
  if (std::any_of(kLoopback.begin(), kLoopback.end(),
                  [&](std::string_view known) { return is_same(header, known); })) {
    return true;
  }
  if (header.starts_with('[') && header.ends_with(']')) {
    header = header.substr(1, header.size() - 2);
  }
  return is_same(header, host);
}

}  // namespace batchrpc::status
