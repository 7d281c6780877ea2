#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file_stamp.hpp"

namespace batchrpc {

/// The names of nodes that may not connect (SecurityOptions::denied): a file with one pattern on a
/// line, in which `*` stands for any characters; `#` begins a comment. Not thread-safe.
class DenyList {
 public:
  /// Loads the file. An empty path: no node is denied. Throws InvalidArgument if it cannot be read.
  explicit DenyList(std::string path);

  [[nodiscard]] bool contains(std::string_view name) const noexcept;

  /// Loads the file if it has changed. Returns whether it has. Throws InvalidArgument if it cannot
  /// be read; the list loaded before stays in use.
  bool look();

 private:
  [[nodiscard]] bool is_readable() const;
  void load();

  const std::string path_;
  FileStamp stamp_;
  std::vector<std::string> patterns_;
};

}  // namespace batchrpc
