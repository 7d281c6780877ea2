#include "process/program_run.hpp"

// What becomes of a program's output.
namespace batchrpc_examples {
namespace program_output_test {

/// Runs a short benchmark by a shell command in which $0 stands for it.
int shell(const Folder& folder, const std::string& command) {
  ProcessOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", command,
                       std::string(BATCHRPC_BIN_DIR) +
                           "/call_benchmark --transport inproc --case scalars3 --in-flight 1 "
                           "--pinned no --handlers short --style get --seconds 0.01 --rounds 1",
                       folder.file("report"), folder.file("errors")};
  return ChildProcess(options).wait_for(60s)->code;
}

TEST_CASE("a program whose standard output is full or closed reports that and fails") {
  const Folder folder;
  CHECK(shell(folder, "$0 >/dev/full 2>$2") == 1);
  CHECK_THAT(folder.text("errors"), Catch::Contains("call_benchmark: standard output is full"));
  CHECK(shell(folder, "$0 >&- 2>$2") == 1);
  CHECK_THAT(folder.text("errors"), Catch::Contains("standard output is full or closed"));
  CHECK(shell(folder, "$0 >/dev/null 2>$2") == 0);
}

TEST_CASE("a report for standard output is alone there") {
  const Folder folder;
  CHECK(shell(folder, "$0 --json /dev/stdout >$1 2>$2") == 0);
  CHECK(folder.json("report").is_array());
  CHECK_FALSE(folder.text("errors").empty());
  CHECK(shell(folder, "$0 --json=/dev/stdout 2>$2 | cat >$1") == 0);
  CHECK(folder.json("report").is_array());
}

}  // namespace program_output_test
}  // namespace batchrpc_examples
