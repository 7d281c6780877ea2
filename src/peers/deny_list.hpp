#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  struct Stamp {
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    std::int64_t size = -1;
    std::uint64_t file = 0;
    bool operator==(const Stamp&) const = default;
  };
  [[nodiscard]] Stamp stamp() const;
  void load();

  const std::string path_;
  Stamp stamp_;
  std::vector<std::string> patterns_;
};

}  // namespace batchrpc
