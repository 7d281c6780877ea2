#include "parameter_server/checkpoint.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

namespace batchrpc_examples {
namespace parameter_server_checkpoint_test {

class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("batchrpc_checkpoint_test_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

Checkpoint some(std::int64_t iterations) {
  Checkpoint checkpoint;
  checkpoint.iterations = iterations;
  checkpoint.servers = 3;
  checkpoint.settings = "lr 0.1";
  checkpoint.values = at::rand({1000});
  checkpoint.velocity = at::rand({1000});
  checkpoint.history = "two trainers";
  return checkpoint;
}

TEST_CASE("A checkpoint is read as it was written") {
  const Folder folder;
  const std::string path = folder.file("a");
  CHECK_THROWS_WITH(read_checkpoint(path), Catch::Contains("No such file"));
  Checkpoint written = some(7);
  if (GENERATE(true, false)) written.velocity.reset();
  write_checkpoint(path, written);
  CHECK_FALSE(std::filesystem::exists(path + ".new"));
  const Checkpoint read = read_checkpoint(path);
  CHECK(read.iterations == 7);
  CHECK(read.servers == 3);
  CHECK(read.settings == "lr 0.1");
  CHECK(read.history == "two trainers");
  CHECK(at::equal(read.values, written.values));
  REQUIRE(read.velocity.defined() == written.velocity.defined());
  if (written.velocity.defined()) CHECK(at::equal(read.velocity, written.velocity));
}

TEST_CASE("A checkpoint that finds no room on the disk leaves the one before") {
  if (::access("/dev/full", W_OK) != 0) {
    WARN("left out: /dev/full");
    return;
  }
  const Folder folder;
  const std::string path = folder.file("a");
  const Checkpoint first = some(1);
  write_checkpoint(path, first);
  std::filesystem::create_symlink("/dev/full", path + ".new");
  try {
    write_checkpoint(path, some(2));
    FAIL("it was written");
  } catch (const CheckpointError& error) {
    CHECK_THAT(error.what(), Catch::Contains(path) && Catch::Contains("No space left"));
  }
  CHECK_FALSE(std::filesystem::exists(std::filesystem::symlink_status(path + ".new")));
  CHECK(at::equal(read_checkpoint(path).values, first.values));
  write_checkpoint(path, some(3));
  CHECK(read_checkpoint(path).iterations == 3);
}

TEST_CASE("A checkpoint that cannot be written says why") {
  CHECK_THROWS_WITH(write_checkpoint("/nowhere/a", some(1)),
                    Catch::Contains("/nowhere/a") && Catch::Contains("No such file"));
}

TEST_CASE("A checkpoint that cannot be put in its place leaves nothing beside it") {
  const Folder folder;
  const std::string path = folder.file("a");
  std::filesystem::create_directory(path);
  CHECK_THROWS_WITH(write_checkpoint(path, some(1)), Catch::Contains("cannot be replaced"));
  CHECK_FALSE(std::filesystem::exists(path + ".new"));
}

TEST_CASE("A damaged checkpoint is refused") {
  const Folder folder;
  const std::string path = folder.file("a");
  write_checkpoint(path, some(1));
  const auto size = std::filesystem::file_size(path);
  const auto is_damaged = [&](const std::string& how) {
    CHECK_THROWS_AS(read_checkpoint(path), DamagedCheckpoint);
    CHECK_THROWS_WITH(read_checkpoint(path), Catch::Contains(path) && Catch::Contains(how));
  };
  SECTION("cut off") {
    std::filesystem::resize_file(path, GENERATE_COPY(size - 1, size / 2, 10U, 0U));
    is_damaged("cut off");
  }
  SECTION("with something behind it") {
    std::ofstream(path, std::ios::app) << 'x';
    is_damaged("longer");
  }
  SECTION("another file") {
    std::ofstream(path) << std::string(1000, 'x');
    is_damaged("not a checkpoint");
  }
  SECTION("with a byte that is another") {
    const auto at = GENERATE_COPY(9U, size / 2, size - 1);  // of iterations, values, checksum
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1));
    file.close();
    is_damaged("checksum");
  }
}

}  // namespace parameter_server_checkpoint_test
}  // namespace batchrpc_examples
