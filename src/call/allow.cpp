#include "batchrpc/call/allow.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_context.hpp"

namespace batchrpc {
namespace {

// Whether `text` matches the pattern. After a mismatch the last `*` takes one character more, so
// the time is at most the product of both lengths.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t at = 0;  // in the pattern
  std::size_t star = std::string_view::npos;
  std::size_t after_star = 0;  // the text from here on is matched with what follows the star
  for (std::size_t i = 0; i < text.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      after_star = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == text[i])) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

}  // namespace

Allow::Allow(std::initializer_list<std::string_view> names) {
  std::vector<std::string> patterns(names.begin(), names.end());
  if (std::find(patterns.begin(), patterns.end(), "") != patterns.end()) {
    throw InvalidArgument(
        "ExposeOptions::allow: a pattern is empty; name the nodes that may call the function, such "
        "as {\"learner\", \"actor*\"}");
  }
  rule_ = [patterns = std::move(patterns)](const PeerIdentity& caller) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& pattern) { return matches(pattern, caller.name); });
  };
}

void Allow::check_not_empty() const {
  if (rule_) return;
  throw InvalidArgument(
      "ExposeOptions::allow: the rule is an empty function; leave `allow` out to let everyone "
      "call");
}

bool Allow::allows(const PeerIdentity& caller) const noexcept {
  try {
    return !rule_ || rule_(caller);
  } catch (...) {  // a rule that cannot decide allows nothing
    return false;
  }
}

}  // namespace batchrpc
