#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/executor.hpp"

namespace batchrpc::profile {

/// "1.500us", "1.500ms" or "1.500s", whichever fits, as PyTorch's profiler writes times.
[[nodiscard]] std::string time_text(Duration time);
/// "12.50%"; "0.00%" of nothing.
[[nodiscard]] std::string share_text(Duration part, Duration whole);
/// With so many decimals.
[[nodiscard]] std::string number_text(double number, int decimals);

/// Columns of text, as wide as they must be: the first to the left, the others to the right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> titles) { rows_.push_back(std::move(titles)); }

  /// A text for each column. What of the first is wider than `first_width` characters is cut off
  /// and ends in "..."; 0: however wide. Its control characters are shown as "?".
  void add(std::vector<std::string> row, std::size_t first_width);

  /// The titles between rules, the rows, and a rule.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace batchrpc::profile
