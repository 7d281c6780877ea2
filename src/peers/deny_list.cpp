#include "peers/deny_list.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/glob.hpp"
#include "base/short_file.hpp"
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

void DenyList::load() {
  const bool readable = is_short_file(path_);
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
