#include "batchrpc/call/allow.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/glob.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_context.hpp"

namespace batchrpc {
Allow::Allow(std::initializer_list<std::string_view> names) {
  std::vector<std::string> patterns(names.begin(), names.end());
  if (std::find(patterns.begin(), patterns.end(), "") != patterns.end()) {
    throw InvalidArgument(
        "ExposeOptions::allow: a pattern is empty; name the nodes that may call the function, such "
        "as {\"learner\", \"actor*\"}");
  }
  rule_ = [patterns = std::move(patterns)](const PeerIdentity& caller) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
      return matches_glob(pattern, caller.name);
    });
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
