#include "batchrpc/transport/tcp_address.hpp"

#include <charconv>
#include <system_error>

namespace batchrpc {
namespace {

/// Whether `name` is 127.x.y.z, and not a name that just begins so.
bool is_loopback_v4(std::string_view name) noexcept {
  int numbers = 0;
  while (true) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || number > 255 || (numbers == 0 && number != 127)) return false;
    ++numbers;
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
    if (name.empty()) return numbers == 4;
    if (name.front() != '.') return false;
    name.remove_prefix(1);
  }
}

bool fits_no_host(char c) noexcept { return (c >= 0 && c <= ' ') || c == 0x7f || c == '/'; }

}  // namespace

TcpAddress TcpAddress::of(const Address& address) {
  if (!address.to_string().starts_with("tcp://")) {
    address.refuse("it is not a TCP address; write tcp://host:port");
  }
  const std::string_view rest = address.name();
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos) {
    address.refuse("the port is missing; write tcp://host:port, for example tcp://127.0.0.1:29500");
  }
  std::string_view host = rest.substr(0, colon);
  const std::string_view digits = rest.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) {
    address.refuse("'" + std::string(digits) + "' is not a port; it is a number from 0 to 65535");
  }
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    address.refuse("write an IPv6 address in brackets, for example tcp://[::1]:29500");
  }
  if (host.empty()) {
    address.refuse("the host is missing; use tcp://0.0.0.0:port to listen on all interfaces");
  }
  for (const char c : host) {
    if (fits_no_host(c))
      address.refuse("the host contains a character that is not allowed in host names");
  }
  return {.host = std::string(host), .port = port};
}

std::string TcpAddress::to_string() const {
  const bool is_bare = host.find(':') == std::string::npos;
  return "tcp://" + (is_bare ? host : "[" + host + "]") + ":" + std::to_string(port);
}

bool TcpAddress::is_loopback() const noexcept {
  return host == "localhost" || host == "::1" || is_loopback_v4(host);
}

}  // namespace batchrpc
