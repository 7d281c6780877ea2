#include "peers/deny_list.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/glob.hpp"
#include "batchrpc/base/error.hpp"

namespace batchrpc {

DenyList::DenyList(std::string path) : path_(std::move(path)), stamp_(FileStamp::of(path_)) {
  if (!path_.empty()) load();
}

bool DenyList::contains(std::string_view name) const noexcept {
  return std::any_of(patterns_.begin(), patterns_.end(),
                     [&](const std::string& pattern) { return matches_glob(pattern, name); });
}

bool DenyList::look() {
  const FileStamp now = FileStamp::of(path_);
  if (path_.empty() || now == stamp_) return false;
  stamp_ = now;
  load();
  return true;
}

// Not a FIFO or a device, which would block the loop, and not a file without end.
bool DenyList::is_readable() const {
  constexpr std::uintmax_t kMost = std::uintmax_t{1} << 20;
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(path_, error);
  return is_file && std::filesystem::file_size(path_, error) <= kMost && !error;
}

void DenyList::load() {
  const bool readable = is_readable();
  std::ifstream file;
  if (readable) file.open(path_);
  std::vector<std::string> patterns;
  for (std::string line; std::getline(file, line);) {
    line.erase(std::min(line.find('#'), line.size()));
    constexpr std::string_view kSpace = " \t\r";
    line.erase(line.find_last_not_of(kSpace) + 1);
    line.erase(0, std::min(line.find_first_not_of(kSpace), line.size()));
    if (!line.empty()) patterns.push_back(line);
  }
  if (!readable || !file.eof()) {
    throw InvalidArgument("NodeOptions::security.denied: " + path_ +
                          " cannot be read; it is a file of at most 1 MiB with the name of a node, "
                          "or a pattern, on each line");
  }
  patterns_ = std::move(patterns);
}

}  // namespace batchrpc
