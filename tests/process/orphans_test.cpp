#include <csignal>
#include <fstream>
#include <thread>

#include "process/parameter_server_program.hpp"

// Processes whose launcher is killed, at any moment of their start.
namespace batchrpc_examples {
namespace orphans_test {

bool runs(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/stat");
  std::string word;
  status >> word >> word >> word;  // the third one is the state
  return status && word != "Z";
}

TEST_CASE("trainers and observers end soon after their launcher is killed, also while they start") {
  const Folder folder;
  const auto [name, words] = GENERATE(
      table<const char*, Words>({{"parameter server", parameter_server({"--trainers", "2"})},
                                 {"cartpole",
                                  {std::string(BATCHRPC_BIN_DIR) + "/cartpole", "--world-size", "3",
                                   "--episodes", "100000"}}}));
  const auto after = std::chrono::milliseconds(GENERATE(0, 100, 400, 1500));
  CAPTURE(name, after.count());
  ChildProcess launcher = start(folder, "launcher", words);
  REQUIRE(becomes_true([&] { return children_of(launcher.pid()).size() == 2; }));
  const std::vector<pid_t> children = children_of(launcher.pid());
  std::this_thread::sleep_for(after);
  launcher.signal(SIGKILL);
  launcher.wait();
  const auto killed = Clock::now();
  for (const pid_t child : children)
    CHECK(becomes_true([&] { return !runs(child); }));
  CHECK(Clock::now() - killed < 10s);
}

}  // namespace orphans_test
}  // namespace batchrpc_examples
