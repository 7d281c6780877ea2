#pragma once

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/free_port.hpp"
#include "common/process.hpp"

// The program `parameter_server`, as people start it.
namespace batchrpc_examples {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / name()) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  [[nodiscard]] nlohmann::json json(const std::string& name) const {
    return nlohmann::json::parse(text(name));
  }

 private:
  static std::string name() {
    static int count = 0;
    return "batchrpc_parameter_server_test_" + std::to_string(::getpid()) + "_" +
           std::to_string(count++);
  }
  std::filesystem::path path_;
};

inline const Words kSmall{"--batch-size", "2", "--image", "32"};

// Starts the program with its output in files of the folder: NAME.out and NAME.err.
inline ChildProcess start(
    const Folder& folder, const std::string& name, const Words& words,
    const std::vector<std::pair<std::string, std::string>>& environment = {}) {
  ProcessOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c",
                       "out=$1; err=$2; shift 2; exec \"$@\" > \"$out\" 2> \"$err\"",
                       "sh",
                       folder.file(name + ".out"),
                       folder.file(name + ".err"),
                       std::string(BATCHRPC_BIN_DIR) + "/parameter_server"};
  for (const Words& some : {kSmall, words})
    options.arguments.insert(options.arguments.end(), some.begin(), some.end());
  options.environment = environment;
  return ChildProcess(options);
}

inline int run(const Folder& folder, const Words& words) {
  ChildProcess child = start(folder, "all", words);
  const auto end = child.wait_for(100s);
  UNSCOPED_INFO("stderr: " << folder.text("all.err"));
  REQUIRE(end);
  return end->signal != 0 ? -end->signal : end->code;
}

template <class Condition>
bool becomes_true(Condition condition, std::chrono::seconds limit = 60s) {
  const auto deadline = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

inline bool has_printed(const Folder& folder, const std::string& name, const std::string& text) {
  return becomes_true([&] { return folder.text(name).find(text) != std::string::npos; });
}

// A training whose processes are started one by one, as torchrun does.
struct Training {
  Training(const Folder& its_folder, int size, Words words)
      : folder(its_folder), world_size(size), arguments(std::move(words)) {}

  ChildProcess rank(int rank, const Words& more = {}) const {
    Words words = arguments;
    words.insert(words.end(), more.begin(), more.end());
    return start(folder, std::to_string(rank), words,
                 {{"MASTER_ADDR", "127.0.0.1"},
                  {"MASTER_PORT", std::to_string(port)},
                  {"RANK", std::to_string(rank)},
                  {"WORLD_SIZE", std::to_string(world_size)}});
  }

  const Folder& folder;
  int world_size;
  Words arguments;
  std::uint16_t port = free_port();
};

}  // namespace batchrpc_examples
