#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace batchrpc_examples {

/// The files STEM.1.checkpoint, STEM.2.checkpoint, … of a folder. It may contain other files.
class NumberedFiles {
 public:
  NumberedFiles(std::string folder, std::string stem)
      : folder_(std::move(folder)), stem_(std::move(stem)) {}

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::string path(std::int64_t number) const { return folder_ + "/" + name(number); }
  /// The numbers of the existing files in ascending order; all are at least 1. Throws
  /// std::filesystem::filesystem_error.
  [[nodiscard]] std::vector<std::int64_t> numbers() const;

  /// Removes all but the `count` newest files.
  void keep_last(std::size_t count) const;
  /// Removes files that replace_file() did not finish.
  void remove_unfinished() const;

 private:
  [[nodiscard]] std::string name(std::int64_t number) const {
    return stem_ + "." + std::to_string(number) + ".checkpoint";
  }

  std::string folder_;
  std::string stem_;
};

}  // namespace batchrpc_examples
