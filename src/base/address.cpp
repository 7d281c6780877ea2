#include "batchrpc/base/address.hpp"

#include <charconv>
#include <system_error>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

constexpr std::size_t kMaxUnixName = 107;  // size of sockaddr_un::sun_path without its terminator

bool is_control(char c) noexcept { return (c >= 0 && c < ' ') || c == 0x7f; }

[[noreturn]] void fail(std::string_view text, const std::string& why) {
  std::string shown;  // what() ends at a zero byte, so control characters are replaced
  for (const char c : text)
    shown += (c < ' ' || c == 0x7f) ? '?' : c;
  throw InvalidArgument("address '" + shown + "': " + why);
}

/// Whether `name` is 127.x.y.z, and not a name that only begins like that.
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

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

Address Address::tcp(std::string host, std::uint16_t port) {
  return {Scheme::tcp, std::move(host), port};
}

Address Address::unix_abstract(std::string name) {
  return {Scheme::unix_abstract, std::move(name), 0};
}

Address Address::parse(std::string_view text) {
  std::string_view rest = text;
  if (take_prefix(rest, "tcp://")) {
    const auto colon = rest.rfind(':');
    if (colon == std::string_view::npos) {
      fail(text, "the port is missing; write tcp://host:port, for example tcp://127.0.0.1:29500");
    }
    std::string_view host = rest.substr(0, colon);
    const std::string_view digits = rest.substr(colon + 1);
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) {
      fail(text, "'" + std::string(digits) + "' is not a port; use a number from 0 to 65535");
    }
    if (host.starts_with('[') && host.ends_with(']')) {
      host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != std::string_view::npos) {
      fail(text, "write an IPv6 address in brackets, for example tcp://[::1]:29500");
    }
    if (host.empty())
      fail(text, "the host is missing; use tcp://0.0.0.0:port to listen on all interfaces");
    for (const char c : host) {
      if (is_control(c) || c == ' ' || c == '/') {
        fail(text, "the host contains a space, a slash or a control character");
      }
    }
    return tcp(std::string(host), port);
  }
  const auto named = [&](Scheme scheme, std::size_t longest) {
    if (rest.empty()) fail(text, "the name after the scheme is missing");
    if (rest.size() > longest) {
      fail(text, "the name is longer than " + std::to_string(longest) + " bytes");
    }
    if (rest.find('\0') != std::string_view::npos) fail(text, "the name contains a zero byte");
    return Address(scheme, std::string(rest), 0);
  };
  if (take_prefix(rest, "unix-abstract:")) return named(Scheme::unix_abstract, kMaxUnixName);
  if (take_prefix(rest, "unix://")) {
    if (!rest.starts_with('/')) {
      fail(text,
           "the path must be absolute; write it with three slashes, as in unix:///tmp/socket");
    }
    return named(Scheme::unix_path, kMaxUnixName);
  }
  if (take_prefix(rest, "inproc://")) return named(Scheme::inproc, 1024);
  fail(text,
       "unknown scheme; use tcp://host:port, unix:///path, unix-abstract:name or "
       "inproc://name");
}

bool Address::is_loopback() const noexcept {
  return scheme_ != Scheme::tcp || name_ == "localhost" || name_ == "::1" || is_loopback_v4(name_);
}

std::string Address::to_string() const {
  switch (scheme_) {
    case Scheme::unix_path:
      return "unix://" + name_;
    case Scheme::unix_abstract:
      return "unix-abstract:" + name_;
    case Scheme::inproc:
      return "inproc://" + name_;
    case Scheme::tcp:
      break;
  }
  const bool bare = name_.find(':') == std::string::npos;
  return "tcp://" + (bare ? name_ : "[" + name_ + "]") + ":" + std::to_string(port_);
}

}  // namespace batchrpc
