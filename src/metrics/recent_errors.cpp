#include "metrics/recent_errors.hpp"

#include <algorithm>
#include <utility>

namespace batchrpc {
namespace {

// Shortens `text` at a boundary between UTF-8 characters.
void shorten(std::string& text, std::size_t longest) {
  if (text.size() <= longest) return;
  while (longest > 0 && (static_cast<unsigned char>(text[longest]) & 0xC0U) == 0x80U)
    --longest;
  text.resize(longest);
}

}  // namespace

void RecentErrors::add(ErrorRecord error) {
  shorten(error.text, kLongestText);
  shorten(error.function, kLongestText);
  shorten(error.peer, kLongestText);
  const std::lock_guard lock(mutex_);
  std::swap(ring_[added_++ % kKept], error);  // the old one is destroyed without the lock
}

std::vector<ErrorRecord> RecentErrors::all(TimePoint now) const {
  std::vector<ErrorRecord> errors;
  const std::lock_guard lock(mutex_);
  const std::uint64_t kept = std::min<std::uint64_t>(added_, kKept);
  for (std::uint64_t i = added_ - kept; i < added_; ++i) {
    errors.push_back(ring_[i % kKept]);
    errors.back().ago = std::max(Duration::zero(), now - errors.back().at);
  }
  return errors;
}

}  // namespace batchrpc
