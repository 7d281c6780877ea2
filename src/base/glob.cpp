#include "base/glob.hpp"

#include <cstddef>

namespace batchrpc {

// After a mismatch the last `*` takes one character more.
bool matches_glob(std::string_view pattern, std::string_view text) noexcept {
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
  return at >= pattern.size() || pattern.find_first_not_of('*', at) == std::string_view::npos;
}

}  // namespace batchrpc
