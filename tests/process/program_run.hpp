#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "becomes_true.hpp"
#include "common/process.hpp"
#include "temporary_folder.hpp"

// Programs, as people start them.
namespace batchrpc_examples {

using namespace std::chrono_literals;
using batchrpc::test::becomes_true;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

/// A folder of a test's own, for the files of its programs.
class Folder : public batchrpc::test::TemporaryFolder {
 public:
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  [[nodiscard]] nlohmann::json json(const std::string& name) const {
    return nlohmann::json::parse(text(name));
  }
};

/// Starts a program with its output in files of the folder: NAME.out and NAME.err.
inline ChildProcess start(
    const Folder& folder, const std::string& name, const Words& command,
    const std::vector<std::pair<std::string, std::string>>& environment = {}) {
  ProcessOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", "out=$1; err=$2; shift 2; exec \"$@\" > \"$out\" 2> \"$err\"", "sh",
                       folder.file(name + ".out"), folder.file(name + ".err")};
  options.arguments.insert(options.arguments.end(), command.begin(), command.end());
  options.environment = environment;
  return ChildProcess(options);
}

/// Waits for its end; gives the exit code, or minus the signal.
inline int end_of(ChildProcess child, const Folder& folder, const std::string& name,
                  std::chrono::seconds limit) {
  const auto end = child.wait_for(limit);
  UNSCOPED_INFO("stderr: " << folder.text(name + ".err"));
  REQUIRE(end);
  return end->signal != 0 ? -end->signal : end->code;
}

/// Of a process that still runs: the running children, the oldest first.
inline std::vector<pid_t> children_of(pid_t parent) {
  const std::string task = std::to_string(parent);
  std::ifstream file("/proc/" + task + "/task/" + task + "/children");
  return {std::istream_iterator<pid_t>(file), {}};
}

inline bool has_printed(const Folder& folder, const std::string& name, const std::string& text,
                        std::chrono::seconds limit = 60s) {
  return becomes_true([&] { return folder.text(name).find(text) != std::string::npos; }, limit);
}

}  // namespace batchrpc_examples
