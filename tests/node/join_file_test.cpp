// Nodes that find their root by a file.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>

#include "batchrpc/batchrpc.hpp"
#include "node/join_file.hpp"
#include "temporary_folder.hpp"

namespace batchrpc {
namespace join_file_test {

using namespace std::chrono_literals;

TEST_CASE("a join file is written whole and read back") {
  const test::TemporaryFolder made;
  const std::filesystem::path& folder = made.path();
  const std::string path = (folder / "join").string();
  CHECK(read_join_file(path).empty());
  (void)JoinFile(path, "tcp://127.0.0.1:4711");
  CHECK(read_join_file(path) == "tcp://127.0.0.1:4711");
  (void)JoinFile(path, "tcp://127.0.0.1:4712");
  CHECK(read_join_file(path) == "tcp://127.0.0.1:4712");
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  CHECK_THROWS_AS(JoinFile((folder / "no" / "such" / "folder").string(), "tcp://x:1"), JoinFailed);
}

TEST_CASE("a join file is for its user alone, and writing it follows no link of others") {
  const test::TemporaryFolder made;
  const std::filesystem::path& folder = made.path();
  const std::string path = (folder / "join").string();
  const auto precious = folder / "precious";
  std::ofstream(precious) << "precious";
  std::filesystem::create_symlink(precious, path + "." + std::to_string(::getpid()));
  (void)JoinFile(path, "tcp://127.0.0.1:4711");
  CHECK(read_join_file(path) == "tcp://127.0.0.1:4711");
  CHECK(read_join_file(precious.string()) == "precious");
  using Perms = std::filesystem::perms;
  CHECK(std::filesystem::status(path).permissions() == (Perms::owner_read | Perms::owner_write));
}

TEST_CASE(
    "a join file that is a FIFO, a folder or a device has no address, and nobody waits for it") {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("join");
  SECTION("a FIFO") { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }
  SECTION("a folder") { std::filesystem::create_directory(path); }
  SECTION("a device") { std::filesystem::create_symlink("/dev/zero", path); }
  CHECK(read_join_file(path).empty());
}

TEST_CASE("nodes find each other through a file", "[threads]") {
  const test::TemporaryFolder made;
  const std::filesystem::path& folder = made.path();
  NodeOptions options;
  options.join = "file://" + (folder / "join").string();
  options.name = "root";
  options.world_size = 2;
  auto root = Node::start(options);
  options.name = "other";
  options.rank = 1;
  const Node other(options);
  const Node first = std::move(root).get();
  first.expose("twice", [](int x) { return 2 * x; });
  CHECK(other.call<int(int)>("root", "twice", 4).get() == 8);
}

TEST_CASE("a join file of a run that is over does not stop the next", "[threads]") {
  const test::TemporaryFolder made;
  const std::filesystem::path& folder = made.path();
  const std::string path = (folder / "join").string();
  NodeOptions options;
  options.join = "file://" + path;
  options.world_size = 2;
  {
    NodeOptions first = options;
    first.world_size = 0;
    const Node gone(first);
  }
  options.name = "other";
  options.rank = 1;
  auto early = Node::start(options);  // reads the old address first
  options.name = "root";
  options.rank = 0;
  const Node root(options);
  CHECK(std::move(early).get().name() == "other");
}

TEST_CASE("a second root does not take the join file of one that still runs", "[threads]") {
  const test::TemporaryFolder made;
  const std::filesystem::path& folder = made.path();
  NodeOptions options;
  options.name = "root";
  options.rank = 0;
  options.join = "file://" + (folder / "join").string();
  Node first(options);
  const std::string address = read_join_file((folder / "join").string());
  CHECK_THROWS_AS(Node(options), JoinFailed);
  CHECK_THROWS_WITH(Node(options), Catch::Contains("another root, which is still running") &&
                                       Catch::Contains((folder / "join").string()));
  CHECK(read_join_file((folder / "join").string()) == address);
  first.shutdown(1s);
  const Node next(options);
  CHECK(read_join_file((folder / "join").string()) == next.address());
}

TEST_CASE("a file with other contents is no root yet, and is named when none comes", "[threads]") {
  const test::TemporaryFolder made;
  const std::filesystem::path& folder = made.path();
  const std::string path = (folder / "join").string();
  std::ofstream(path) << std::string(100'000, 'x');
  CHECK(read_join_file(path).size() == 1024);
  std::ofstream(path) << "{\"tool\": 1}";
  NodeOptions options;
  options.name = "other";
  options.rank = 1;
  options.world_size = 2;
  options.join = "file://" + path;
  NodeOptions impatient = options;
  impatient.join_timeout = 100ms;
  CHECK_THROWS_WITH(Node(impatient), Catch::Contains(path + " does not name a root") &&
                                         Catch::Contains("{\"tool\": 1}"));
  auto patient = Node::start(options);
  options.name = "root";
  options.rank = 0;
  const Node root(options);
  CHECK(std::move(patient).get().name() == "other");
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
}

}  // namespace join_file_test
}  // namespace batchrpc
