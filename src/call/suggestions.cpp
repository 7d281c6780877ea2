#include "call/suggestions.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>

#include "call/function_table.hpp"

namespace batchrpc {
namespace {

constexpr std::size_t kLongest = 256;  // a name from the wire may be of any length
constexpr std::size_t kLongestRest = 64;
constexpr std::size_t kMostCandidates = 64;
constexpr std::size_t kMostShown = 3;

/// Two names without what they share at their begins and ends. Their distance is the same.
struct Rests {
  Rests(std::string_view first, std::string_view second) noexcept : a(first), b(second) {
    const auto same_begin = std::ranges::mismatch(a, b).in1 - a.begin();
    a.remove_prefix(static_cast<std::size_t>(same_begin));
    b.remove_prefix(static_cast<std::size_t>(same_begin));
    while (!a.empty() && !b.empty() && a.back() == b.back()) {
      a.remove_suffix(1);
      b.remove_suffix(1);
    }
  }
  [[nodiscard]] std::size_t longer() const noexcept { return std::max(a.size(), b.size()); }

  std::string_view a;
  std::string_view b;
};

/// Returns the Levenshtein distance. Neither rest is longer than kLongestRest.
std::size_t distance(const Rests& rests) {
  const auto& [a, b] = rests;
  std::array<std::size_t, kLongestRest + 1> room{};
  const std::span row(room.data(), b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string_view last_part(std::string_view name) {
  const auto colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

}  // namespace

std::string suggest(std::string_view name, const std::vector<std::string>& candidates,
                    const Stem& stem) {
  if (name.size() > kLongest) return {};
  const auto compared = [&](std::string_view any) { return last_part(stem ? stem(any) : any); };
  const std::string_view wanted = compared(name);
  const std::size_t most_edits = 1 + name.size() / 4;
  using Ranked = std::pair<std::size_t, std::string_view>;
  std::vector<Ranked> near;   // with their edits
  std::vector<Ranked> alike;  // with the length in which they differ
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest || candidate.starts_with(kReservedPrefix)) continue;
    if (compared(candidate) == wanted) {
      near.emplace_back(0, candidate);
      continue;
    }
    const std::size_t shorter = std::min(name.size(), candidate.size());
    if (std::max(name.size(), candidate.size()) - shorter > most_edits) continue;
    const std::size_t rest = Rests(name, candidate).longer();
    if (rest <= kLongestRest) alike.emplace_back(rest, candidate);
  }
  if (alike.size() > kMostCandidates) {
    std::nth_element(alike.begin(), alike.begin() + kMostCandidates, alike.end());
    alike.resize(kMostCandidates);
  }
  for (const auto& [rest, candidate] : alike) {
    const std::size_t edits = distance(Rests(name, candidate));
    if (edits <= most_edits) near.emplace_back(edits, candidate);
  }
  if (near.empty()) return {};
  const std::size_t shown = std::min(near.size(), kMostShown);
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(shown), near.end());
  near.resize(shown);
  std::string text;
  for (const auto& [edits, candidate] : near) {
    text += text.empty() ? "did you mean '" : ", '";
    text += candidate;
    text += "'";
  }
  return text + "?";
}

bool SuggestionRate::take(TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (now - since_ >= kPause) {
    since_ = now;
    left_ = kMost;
  }
  if (left_ == 0) return false;
  --left_;
  return true;
}

}  // namespace batchrpc
