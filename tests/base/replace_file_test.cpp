#include "base/replace_file.hpp"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace batchrpc {
namespace replace_file_test {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "batchrpc-replace-file-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }

  fs::path path;
};

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST_CASE("A file is written as a whole, with its mode, and replaces the one that was there") {
  const Folder folder;
  const fs::path file = folder.path / "file";
  CHECK_FALSE(replace_file(file.string(), "first", 0600));
  CHECK(content(file) == "first");
  struct stat found {};
  REQUIRE(::stat(file.c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 0600);
  const std::string large(3 << 20, 'x');
  CHECK_FALSE(replace_file(file.string(), large, 0600));
  CHECK(content(file) == large);
  CHECK(folder.files() == 1);
}

TEST_CASE("A link at the file's place is replaced, and what it points to stays as it is") {
  const Folder folder;
  const fs::path precious = folder.path / "precious";
  std::ofstream(precious) << "precious";
  const fs::path link = folder.path / "link";
  fs::create_symlink(precious, link);
  CHECK_FALSE(replace_file(link.string(), "text", 0600));
  CHECK(content(precious) == "precious");
  CHECK_FALSE(fs::is_symlink(link));
  CHECK(content(link) == "text");
}

TEST_CASE("A file that cannot be written is an error, and leaves nothing behind") {
  const Folder folder;
  CHECK(replace_file((folder.path / "no" / "file").string(), "text", 0600) ==
        std::errc::no_such_file_or_directory);
  fs::create_directory(folder.path / "folder");
  CHECK(replace_file((folder.path / "folder").string(), "text", 0600) == std::errc::file_exists);
  CHECK(folder.files() == 1);
}

TEST_CASE("A FIFO or a device is not replaced by a file, by no link to it either") {
  const Folder folder;
  const fs::path fifo = folder.path / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const fs::path link = folder.path / "link";
  fs::create_symlink("/dev/null", link);
  CHECK(replace_file(fifo.string(), "text", 0600) == std::errc::file_exists);
  CHECK(replace_file(link.string(), "text", 0600) == std::errc::file_exists);
  CHECK(fs::is_fifo(fifo));
  CHECK(fs::is_symlink(link));
  CHECK(folder.files() == 2);
}

}  // namespace replace_file_test
}  // namespace batchrpc
