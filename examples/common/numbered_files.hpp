#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace batchrpc_examples {

/// Files STEM.1.checkpoint, STEM.2.checkpoint, … of a folder, that may have others beside them.
class NumberedFiles {
 public:
  NumberedFiles(std::string folder, std::string stem)
      : folder_(std::move(folder)), stem_(std::move(stem)) {}

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::string path(std::int64_t number) const { return folder_ + "/" + name(number); }
  /// Of the files that there are, in order; from 1. Throws std::filesystem::filesystem_error.
  [[nodiscard]] std::vector<std::int64_t> numbers() const;

  /// Removes all but the last `count`.
  void keep_last(std::size_t count) const;
  /// Removes what replace_file() was not done with.
  void remove_unfinished() const;

 private:
  [[nodiscard]] std::string name(std::int64_t number) const {
    return stem_ + "." + std::to_string(number) + ".checkpoint";
  }

  std::string folder_;
  std::string stem_;
};

}  // namespace batchrpc_examples
