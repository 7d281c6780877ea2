#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/targets.hpp"

// Every input of the corpus, in this build: with its compiler and sanitizers. New ones are found by
// scripts/fuzz.sh.

namespace batchrpc::fuzz {
namespace corpus_test {

std::vector<char> content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("whatever the fuzz targets have been given does no harm") {
  for (const Target& target : kTargets) {
    int inputs = 0;
    const std::filesystem::path folder =
        std::filesystem::path(BATCHRPC_SOURCE_DIR) / "tests/fuzz/corpus" / target.name;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      INFO(entry.path().string());
      const std::vector<char> input = content(entry.path());
      CHECK_NOTHROW(target.run(std::as_bytes(std::span(input))));
      ++inputs;
    }
    INFO(target.name);
    CHECK(inputs >= 10);
  }
}

TEST_CASE("inputs cut anywhere do no harm") {
  for (const Target& target : kTargets) {
    const std::filesystem::path folder =
        std::filesystem::path(BATCHRPC_SOURCE_DIR) / "tests/fuzz/corpus" / target.name;
    std::size_t number = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::vector<char> input = content(entry.path());
      const std::size_t size = ++number * 37 % (input.size() + 1);
      INFO(entry.path().string() << ", the first " << size << " bytes");
      CHECK_NOTHROW(target.run(std::as_bytes(std::span(input).first(size))));
    }
  }
}

}  // namespace corpus_test
}  // namespace batchrpc::fuzz
