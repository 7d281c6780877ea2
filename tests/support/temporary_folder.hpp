#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

namespace batchrpc::test {

/// A new, empty folder that is deleted at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() { std::filesystem::create_directory(path_); }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }

 private:
  static std::string name() {
    static int count = 0;
    return "batchrpc_test_" + std::to_string(::getpid()) + "_" + std::to_string(count++);
  }
  const std::filesystem::path path_ = std::filesystem::temp_directory_path() / name();
};

}  // namespace batchrpc::test
