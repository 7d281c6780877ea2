#include "peers/deny_list.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "batchrpc/base/error.hpp"
#include "temporary_folder.hpp"

namespace batchrpc {
namespace deny_list_test {

TEST_CASE("a deny list has names and patterns, without comments and space") {
  const test::TemporaryFolder folder;
  const std::string file = folder.file("denied");
  std::ofstream(file) << "mallory\n  evil*  # all of them\n\n# nobody\n";
  const DenyList list(file);
  CHECK(list.contains("mallory"));
  CHECK(list.contains("evil7"));
  CHECK_FALSE(list.contains("nobody"));
  CHECK_FALSE(DenyList("").contains("mallory"));
}

TEST_CASE("a deny list that becomes a FIFO, a device, a folder or a giant stays as it was") {
  const test::TemporaryFolder folder;
  const std::string file = folder.file("denied");
  std::ofstream(file) << "mallory\n";
  DenyList list(file);
  std::filesystem::remove(file);
  SECTION("a FIFO") { REQUIRE(::mkfifo(file.c_str(), 0600) == 0); }
  SECTION("a device") { std::filesystem::create_symlink("/dev/zero", file); }
  SECTION("a folder") { std::filesystem::create_directory(file); }
  SECTION("a giant") {
    std::ofstream(file) << "x\n";
    std::filesystem::resize_file(file, std::uintmax_t{8} << 30);
  }
  SECTION("nothing") {}
  CHECK_THROWS_AS(list.look(), InvalidArgument);
  CHECK(list.contains("mallory"));
}

}  // namespace deny_list_test
}  // namespace batchrpc
