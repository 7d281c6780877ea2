#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "batchrpc/profile.hpp"
#include "long_tests.hpp"

// Profilers of nodes with threads of their own, over sockets.
namespace batchrpc {
namespace profiler_threads_test {

using namespace std::chrono_literals;

TEST_CASE("profilers come and go while several threads call, and records are whole", "[threads]") {
  const Node server({.name = "server", .world_size = 0, .join = "tcp://127.0.0.1:0"});
  const Node client({.name = "client", .rank = -1, .world_size = 0, .join = server.address()});
  server.expose("twice", [](int number) { return 2 * number; });
  server.expose("nested", [&](int number) -> Future<int> {
    return server.call<int(int)>("server", "twice", number);
  });
  const Batcher<int(int)> batcher({.max_size = 4, .max_wait = 100us},
                                  [](std::vector<int> rows) { return rows; });
  server.expose("batched", batcher);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int number = 0; !over; ++number) {
        const char* const name = i == 0 ? "twice" : i == 1 ? "nested" : "batched";
        auto one = client.call<int(int)>("server", name, number);
        auto two = client.call<int(int)>("server", name, number);
        const int expected = i == 2 ? number : 2 * number;
        if (std::move(one).get() != expected || std::move(two).get() != expected) std::abort();
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    Profiler profiler(client, {.max_events = 2000});
    const Profiler answered(server, {.sample = 2, .answered = true, .max_events = 1000});
    const auto begin = std::chrono::steady_clock::now();
    while (profiler.recording().calls.size() < 50 &&
           std::chrono::steady_clock::now() - begin < 10s) {
      std::this_thread::yield();
    }
    CHECK(profiler.gather().empty());
    for (const CallRecord& call : profiler.recording().calls) {
      if (call.caller.node != "client" || call.called == TimePoint()) continue;
      REQUIRE(call.error.empty());
      CHECK(call.ended >= call.called);
      CHECK(call.finished >= call.received);
      CHECK(CallPhases::of(call).total() == call.ended - call.called);
    }
    CHECK_FALSE(profiler.key_averages().rows().empty());
  }
  over = true;
  for (std::thread& thread : threads)
    thread.join();
}

TEST_CASE("several threads may write to one file, which is whole whenever it is looked at",
          "[threads]") {
  const Node node({.name = "node", .world_size = 0, .join = "tcp://127.0.0.1:0"});
  node.expose("twice", [](int number) { return 2 * number; });
  const Profiler profiler(node);
  for (int i = 0; i < 100; ++i)
    node.call<int(int)>("node", "twice", i).get();
  const auto folder = std::filesystem::temp_directory_path() /
                      ("batchrpc_profiler_threads_test." + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "trace.json").string();
  profiler.export_chrome_trace(path);
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < test::less_if_sanitized(50); ++round) {
        try {
          profiler.export_chrome_trace(path);
          const auto trace = nlohmann::json::parse(std::ifstream(path));
          if (trace.at("traceEvents").size() < 100) ++failed;
        } catch (const std::exception&) {
          ++failed;
        }
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(failed == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(folder),
                      std::filesystem::directory_iterator()) == 1);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a trace that goes to standard output is behind what was written, and before the rest",
          "[threads]") {
  const Node node({.name = "node", .world_size = 0, .join = "tcp://127.0.0.1:0"});
  const Profiler profiler(node);
  std::string path = (std::filesystem::temp_directory_path() / "batchrpc_stdout.XXXXXX").string();
  const int file = ::mkstemp(path.data());
  REQUIRE(file >= 0);
  std::fflush(stdout);
  const int terminal = ::dup(STDOUT_FILENO);
  ::dup2(file, STDOUT_FILENO);
  std::fputs("before\n", stdout);
  std::string failed;
  try {
    profiler.export_chrome_trace("/dev/stdout");
  } catch (const std::exception& error) {
    failed = error.what();
  }
  std::fputs("\nafter\n", stdout);
  std::fflush(stdout);
  ::dup2(terminal, STDOUT_FILENO);
  ::close(terminal);
  ::close(file);
  std::ifstream written(path);
  const std::string text{std::istreambuf_iterator<char>(written), {}};
  std::filesystem::remove(path);
  CHECK(failed.empty());
  CHECK(text.starts_with("before\n{"));
  CHECK(text.find("traceEvents") != std::string::npos);
  CHECK(text.ends_with("}\n\nafter\n"));
}

}  // namespace profiler_threads_test
}  // namespace batchrpc
