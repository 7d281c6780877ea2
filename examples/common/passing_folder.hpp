#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace batchrpc_examples {

/// A new temporary folder, which is gone with this, and all that is in it.
class PassingFolder {
 public:
  /// Its name begins with the program's. Throws std::runtime_error.
  explicit PassingFolder(const std::string& program) {
    std::string pattern = (std::filesystem::temp_directory_path() / (program + ".XXXXXX")).string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
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
