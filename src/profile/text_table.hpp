#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/executor.hpp"

namespace batchrpc::profile {

/// Returns "1.500us", "1.500ms" or "1.500s", depending on the size, as in PyTorch's profiler.
[[nodiscard]] std::string time_text(Duration time);
/// Returns "12.50%"; "0.00%" if `whole` is zero.
[[nodiscard]] std::string share_text(Duration part, Duration whole);
/// Writes a number with `decimals` decimals.
[[nodiscard]] std::string number_text(double number, int decimals);

/// Columns of text, each as wide as its longest entry; the first is aligned left, the others right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> titles) { rows_.push_back(std::move(titles)); }

  /// Adds a text for each column. If the first is wider than `first_width` characters, it is cut
  /// off and ends in "..."; 0: never. What is not plain text in it is escaped.
  void add(std::vector<std::string> row, std::size_t first_width);

  /// Returns the titles between rules, then the rows and a rule.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace batchrpc::profile
