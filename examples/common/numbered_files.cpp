#include "common/numbered_files.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace batchrpc_examples {

std::vector<std::int64_t> NumberedFiles::numbers() const {
  std::vector<std::int64_t> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string file = entry.path().filename();
    std::int64_t number = 0;
    const std::size_t digits = std::min(file.size(), stem_.size() + 1);
    std::from_chars(file.data() + digits, file.data() + file.size(), number);
    if (number > 0 && file == name(number)) all.push_back(number);
  }
  std::sort(all.begin(), all.end());
  return all;
}

void NumberedFiles::keep_last(std::size_t count) const {
  const std::vector<std::int64_t> all = numbers();
  for (std::size_t i = 0; i + count < all.size(); ++i)
    std::filesystem::remove(path(all[i]));
}

void NumberedFiles::remove_unfinished() const {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string file = entry.path().filename();
    if (entry.is_regular_file() && file.starts_with(stem_ + ".") && file.ends_with(".new")) {
      std::filesystem::remove(entry.path());
    }
  }
}

}  // namespace batchrpc_examples
