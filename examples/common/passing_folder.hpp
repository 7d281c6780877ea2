#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace batchrpc_examples {

/// A new temporary folder. It is removed with its contents when this object is destroyed.
class PassingFolder {
 public:
  /// The folder's name begins with the program's name. Throws std::runtime_error.
  explicit PassingFolder(const std::string& program) {
    std::string pattern = (std::filesystem::temp_directory_path() / (program + ".XXXXXX")).string();
    if (::mkdtemp(pattern.data()) == nullptr)
      throw std::runtime_error("cannot create a temporary folder");
    path_ = pattern;
  }
  ~PassingFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PassingFolder(const PassingFolder&) = delete;
  PassingFolder& operator=(const PassingFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace batchrpc_examples
