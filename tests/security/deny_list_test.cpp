#include "peers/deny_list.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace deny_list_test {

struct Folder {
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("batchrpc_deny_list_" + std::to_string(::getpid()));
  const std::string file = path / "denied";
};

TEST_CASE("a deny list has names and patterns, without comments and space") {
  const Folder folder;
  std::ofstream(folder.file) << "mallory\n  evil*  # all of them\n\n# nobody\n";
  const DenyList list(folder.file);
  CHECK(list.contains("mallory"));
  CHECK(list.contains("evil7"));
  CHECK_FALSE(list.contains("nobody"));
  CHECK_FALSE(DenyList("").contains("mallory"));
}

TEST_CASE("a deny list that becomes a FIFO, a device, a folder or a giant stays as it was") {
  const Folder folder;
  std::ofstream(folder.file) << "mallory\n";
  DenyList list(folder.file);
  std::filesystem::remove(folder.file);
  SECTION("a FIFO") { REQUIRE(::mkfifo(folder.file.c_str(), 0600) == 0); }
  SECTION("a device") { std::filesystem::create_symlink("/dev/zero", folder.file); }
  SECTION("a folder") { std::filesystem::create_directory(folder.file); }
  SECTION("a giant") {
    std::ofstream(folder.file) << "x\n";
    std::filesystem::resize_file(folder.file, std::uintmax_t{8} << 30);
  }
  SECTION("nothing") {}
  CHECK_THROWS_AS(list.look(), InvalidArgument);
  CHECK(list.contains("mallory"));
}

}  // namespace deny_list_test
}  // namespace batchrpc
