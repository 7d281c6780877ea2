#include "batchrpc/base/address.hpp"

#include <algorithm>

#include "base/plain_text.hpp"
#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

[[noreturn]] void refuse_text(std::string_view text, const std::string& why) {
  constexpr std::size_t kMostShown = 1024;
  throw InvalidArgument("address '" + escaped(text, kMostShown) + "': " + why);
}

bool is_letter(char c) noexcept { return c >= 'a' && c <= 'z'; }

bool is_scheme(std::string_view text) noexcept {
  return !text.empty() && is_letter(text.front()) && std::ranges::all_of(text, [](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

}  // namespace

Address Address::parse(std::string_view text) {
  const auto colon = text.find(':');
  const std::string_view scheme = text.substr(0, colon);
  if (colon == std::string_view::npos || !is_scheme(scheme)) {
    refuse_text(text,
                "it does not begin with a scheme; write tcp://host:port or unix:///path, for "
                "example tcp://127.0.0.1:29500");
  }
  std::string_view name = text.substr(colon + 1);
  if (name.starts_with("//")) name.remove_prefix(2);
  if (name.empty()) refuse_text(text, "the name after the scheme is missing");
  return {std::string(text), std::string(scheme), std::string(name)};
}

void Address::refuse(const std::string& why) const { refuse_text(text_, why); }

}  // namespace batchrpc
