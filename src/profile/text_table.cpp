#include "profile/text_table.hpp"

#include <algorithm>
#include <charconv>

#include "base/plain_text.hpp"

namespace batchrpc::profile {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::size_t kLongestName = 16 << 10;  // names may be a peer's, and of any length

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

// Returns the first `width` characters.
std::string_view cut(std::string_view text, std::size_t width) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins_character(text[i]) && seen++ == width) return text.substr(0, i);
  }
  return text;
}

}  // namespace

std::string number_text(double number, int decimals) {
  char text[400];  // the largest has 309 digits
  return {text,
          std::to_chars(text, text + sizeof text, number, std::chars_format::fixed, decimals).ptr};
}

std::string time_text(Duration time) {
  const auto nanoseconds = static_cast<double>(time.count());
  if (nanoseconds >= 1e9) return number_text(nanoseconds / 1e9, 3) + "s";
  if (nanoseconds >= 1e6) return number_text(nanoseconds / 1e6, 3) + "ms";
  return number_text(nanoseconds / 1e3, 3) + "us";
}

std::string share_text(Duration part, Duration whole) {
  if (whole == Duration::zero()) return "0.00%";
  return number_text(100 * static_cast<double>(part.count()) / static_cast<double>(whole.count()),
                     2) +
         "%";
}

void TextTable::add(std::vector<std::string> row, std::size_t first_width) {
  std::string& first = row.front();
  if (!is_plain_text(first)) first = escaped(first, kLongestName);
  if (first_width > 0 && width_of(first) > first_width) {
    const std::string dots(std::min<std::size_t>(3, first_width), '.');
    first = std::string(cut(first, first_width - dots.size())) + dots;
  }
  rows_.push_back(std::move(row));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string rule;
  for (const std::size_t width : widths)
    rule.append(rule.empty() ? "" : kGap).append(width, '-');
  rule += '\n';
  std::string text = rule;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string& cell = rows_[r][i];
      const std::size_t blanks = widths[i] - width_of(cell);
      if (i == 0) {
        text.append(cell).append(blanks, ' ');
      } else {
        text.append(kGap).append(blanks, ' ').append(cell);
      }
    }
    text += '\n';
    if (r == 0) text += rule;
  }
  return text + rule;
}

}  // namespace batchrpc::profile
