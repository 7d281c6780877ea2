#include <ATen/ATen.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/command_line.hpp"
#include "common/process.hpp"
#include "tensor_benchmark/child.hpp"
#include "tensor_benchmark/copies.hpp"
#include "tensor_benchmark/options.hpp"
#include "tensor_benchmark/report.hpp"
#include "tensor_benchmark/rounds.hpp"
#include "tensor_benchmark/sample.hpp"
#include "tensor_benchmark/tensors.hpp"

namespace tensor_benchmark {
namespace tensor_benchmark_test {

using namespace std::chrono_literals;
using batchrpc_examples::ChildProcess;
using batchrpc_examples::UsageError;

constexpr auto kProgram = BATCHRPC_BIN_DIR "/tensor_benchmark";

Options parse(const std::vector<std::string>& arguments) {
  std::vector<const char*> all{"tensor_benchmark"};
  for (const std::string& argument : arguments)
    all.push_back(argument.c_str());
  return parse_options(static_cast<int>(all.size()), all.data()).value();
}

/// A folder for what a program writes.
class Folder {
 public:
  Folder() { std::filesystem::create_directory(path_); }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }

 private:
  const std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                      ("batchrpc_tensor_benchmark_" + std::to_string(::getpid()));
};

/// The program; what it writes is in the files "out" and "error" of the folder.
ChildProcess start(const std::string& arguments, const Folder& folder) {
  const std::string command = "exec '" + std::string(kProgram) + "' " + arguments + " >'" +
                              folder.path("out") + "' 2>'" + folder.path("error") + "'";
  return ChildProcess(
      {.arguments = {"-c", command}, .environment = {{"LC_ALL", "C"}}, .program = "/bin/sh"});
}

TEST_CASE("tensor_benchmark measures everything by default, and what is named otherwise") {
  const Options all = parse({});
  CHECK(all.modes.size() == 2);
  CHECK(all.transports.size() == 4);
  CHECK(all.bytes.front() == 1024);
  CHECK(all.bytes.back() == 256 << 20);
  CHECK(all.windows_of(Mode::echo) == std::vector<int>{1});
  CHECK(all.windows_of(Mode::push) == std::vector<int>{8});
  CHECK(all.floor);

  const Options some =
      parse({"--mode",     "push,echo",  "--bytes",      "64K,1000,3M", "--transport", "unix",
             "--window",   "2,16",       "--contiguous", "no",          "--pinned",    "yes,no",
             "--receive",  "into",       "--seconds",    "1.5",         "--rounds",    "2",
             "--no-floor", "--handlers", "short"});
  CHECK((some.modes == std::vector<Mode>{Mode::push, Mode::echo}));
  CHECK((some.bytes == std::vector<std::uint64_t>{64 << 10, 1000, 3 << 20}));
  CHECK((some.transports == std::vector<Transport>{Transport::unix_socket}));
  CHECK(some.windows_of(Mode::echo) == std::vector<int>{2, 16});
  CHECK(some.windows_of(Mode::push) == std::vector<int>{2, 16});
  CHECK((some.contiguous == std::vector<bool>{false}));
  CHECK((some.pinned == std::vector<bool>{true, false}));
  CHECK((some.receive == std::vector<Receive>{Receive::into}));
  CHECK(some.seconds == 1.5);
  CHECK(some.rounds == 2);
  CHECK_FALSE(some.floor);
  CHECK(some.handlers == Handlers::short_ones);
}

TEST_CASE("tensor_benchmark refuses a malformed command line, and names the option") {
  const std::vector<std::vector<std::string>> malformed{
      {"--mode", "pull"},     {"--mode", "echo,echo"},
      {"--mode", ""},         {"--mode", "echo,"},
      {"--bytes", "1k"},      {"--bytes", "K"},
      {"--bytes", "-1K"},     {"--bytes", "1.5K"},
      {"--bytes", "504"},     {"--bytes", "2G"},
      {"--bytes", "1025"},    {"--bytes", "99999999999999999999"},
      {"--bytes", "1K,1024"}, {"--bytes", ""},
      {"--transport", "udp"}, {"--window", "0"},
      {"--window", "65"},     {"--window", "8,8"},
      {"--window", "one"},    {"--contiguous", "maybe"},
      {"--pinned", "1"},      {"--receive", "reused"},
      {"--handlers", "long"}, {"--seconds", "0"},
      {"--seconds", "nan"},   {"--seconds", "61"},
      {"--rounds", "0"},      {"--rounds", "1001"},
      {"--json", ""},         {"--json", "/no/such/folder/file"},
  };
  for (const auto& arguments : malformed) {
    CAPTURE(arguments);
    CHECK_THROWS_WITH(parse(arguments), Catch::Contains(arguments.front()));
    CHECK_THROWS_AS(parse(arguments), UsageError);
  }
  CHECK_THROWS_AS(parse({"stray"}), UsageError);
  CHECK_THROWS_AS(parse({"--no-such-option"}), UsageError);
}

TEST_CASE("sizes are written as they are read") {
  CHECK(parse_bytes("1K") == 1024);
  CHECK(parse_bytes("1G") == 1 << 30);
  CHECK(bytes_text(1 << 30) == "1G");
  CHECK(bytes_text(64 << 20) == "64M");
  CHECK(bytes_text(1536 << 10) == "1536K");
  CHECK(bytes_text(1000) == "1000");
}

TEST_CASE("tensor_benchmark ends with 2 and one line on stderr before it measures anything") {
  const Folder folder;
  for (const std::string arguments : {"--bytes none", "--json /no/such/folder/file"}) {
    CAPTURE(arguments);
    CHECK(start(arguments, folder).wait().code == 2);
    CHECK(folder.text("out").empty());
    const std::string error = folder.text("error");
    CHECK_THAT(error, Catch::StartsWith("tensor_benchmark: ") &&
                          Catch::Contains(arguments.substr(0, arguments.find(' '))));
    CHECK(std::count(error.begin(), error.end(), '\n') == 1);
  }
  CHECK(start("--help", folder).wait().code == 0);
  CHECK_THAT(folder.text("out"), Catch::Contains("--window"));
}

TEST_CASE("a tensor has the bytes that were asked for, and a view of it is not dense") {
  for (const std::uint64_t bytes : {1024, 1032, 8 * 131, 1 << 20}) {
    CAPTURE(bytes);
    const at::Tensor dense = make_tensor(bytes, true);
    const at::Tensor view = make_tensor(bytes, false);
    CHECK(dense.nbytes() == bytes);
    CHECK(dense.is_contiguous());
    CHECK(view.nbytes() == bytes);
    CHECK_FALSE(view.is_contiguous());
    CHECK(at::equal(view, dense.t()));
  }
}

TEST_CASE("copies are counted while they are to be, and by whom") {
  if (!CopyCounts::possible()) {
    WARN("left out: batchrpc as a static library");
    return;
  }
  CopyCounts counts;
  std::vector<std::byte> from(1 << 20, std::byte{1});
  std::vector<std::byte> to(1 << 20);
  const auto copy = [&](std::size_t bytes) {
    std::memcpy(to.data(), from.data(), bytes);
    return to.back();
  };
  const volatile std::size_t all = from.size();
  copy(all);
  counts.begin();
  copy(all);
  const volatile std::size_t few = CopyCounts::kLeastCopy - 1;
  copy(few);
  const Copied copied = counts.end();
  copy(all);
  CHECK(copied.client == from.size());
  CHECK(copied.server == 0);

  const at::Tensor view = make_tensor(1 << 20, false);
  counts.begin();
  const at::Tensor dense = view.contiguous();
  CHECK(counts.end().client == dense.nbytes());
}

TEST_CASE("the pages that a process touches first are counted") {
  const std::uint64_t before = minor_faults(::getpid());
  constexpr std::size_t kBytes = 16 << 20;
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  std::memset(memory, 1, kBytes);
  CHECK(minor_faults(::getpid()) > before);
  ::munmap(memory, kBytes);
}

Row row_of(std::vector<double> gb_per_s, std::vector<double> p50_us, std::vector<CpuTime> cpu) {
  Row row;
  row.which.bytes = 1 << 20;
  row.gb_per_s = std::move(gb_per_s);
  row.us = p50_us;
  row.p50_us = std::move(p50_us);
  row.cpu_s_per_gb = std::move(cpu);
  row.fresh_pages = {{1, 0}, {3, 2}, {2, 7}};
  return row;
}

TEST_CASE("a ratio is the median of the rounds' ratios, and the report has it") {
  Row floor = row_of({1, 2, 4}, {10, 20, 40}, {{1, 1}, {1, 2}, {2, 3}});
  floor.floor = true;
  const Row row = row_of({.5, 1.8, 3}, {11, 24, 80}, {{2, 1}, {3, 3}, {1, 0}});
  CHECK(ratio(row, floor).gb_per_s == Approx(.75));
  CHECK(ratio(row, floor).p50 == Approx(1.2));
  CHECK(ratio(row, floor).cpu == Approx(1.5));

  const auto entries = to_json({floor, row}, Options{});
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].at("system") == "floor");
  CHECK(entries[0].at("to_floor").is_null());
  CHECK(entries[1].at("system") == "batchrpc");
  CHECK(entries[1].at("to_floor").at("gb_per_s") == Approx(.75));
  CHECK(entries[1].at("gb_per_s") == 1.8);
  CHECK(entries[1].at("rounds") == std::vector<double>{.5, 1.8, 3});
  CHECK(entries[1].at("p50_us") == 24);
  CHECK(entries[1].at("fresh_pages_per_call") == 4);
  CHECK(entries[1].at("copies").is_null());
  std::ostringstream table;
  print_group(table, {floor, row});
  CHECK_THAT(table.str(), Catch::Contains("batchrpc fresh") && Catch::Contains("0.75"));
  CHECK(to_json({row}, Options{})[0].at("to_floor").is_null());
}

TEST_CASE("an echo counts both ways, and needs memory for what is under way") {
  const Case echo{Transport::tcp, Mode::echo, 1 << 20, 4, true, false};
  const Case push{Transport::tcp, Mode::push, 1 << 20, 4, true, false};
  CHECK(moved_bytes(echo) == 2 << 20);
  CHECK(moved_bytes(push) == 1 << 20);
  CHECK(needed_memory(push) >= 5 << 20);
  CHECK(needed_memory(echo) > needed_memory(push));
}

TEST_CASE("tensor_benchmark writes a list with the floor and each way of receiving") {
  const Folder folder;
  const auto end = start("--bytes 1K,1M --window 1,3 --seconds 0.01 --rounds 2 --json '" +
                             folder.path("json") + "'",
                         folder)
                       .wait();
  CAPTURE(folder.text("error"));
  REQUIRE(end.success());
  CHECK_THAT(folder.text("out"), Catch::Contains("x GB/s"));

  const auto entries = nlohmann::json::parse(folder.text("json"));
  REQUIRE(entries.is_array());
  CHECK(entries.size() == 4 * 2 * 2 * 2 * (3 + 2));
  for (const nlohmann::json& entry : entries) {
    CAPTURE(entry.dump());
    const bool floor = entry.at("system") == "floor";
    const bool inproc = entry.at("transport") == "inproc";
    CHECK(entry.at("gb_per_s") > 0);
    CHECK(entry.at("rounds").size() == 2);
    CHECK(entry.at("p50_us") > 0);
    CHECK(entry.at("p99_us") >= entry.at("p50_us"));
    CHECK(entry.at("fresh_pages_per_call") >= 0);
    CHECK(entry.at("to_floor").is_null() == floor);
    CHECK(entry.at("machine").contains("cpu"));
    if (!entry.at("copies").is_null() && !inproc) {
      const double client = entry.at("copies").at("client");
      const double server = entry.at("copies").at("server");
      const double views = entry.at("contiguous") ? 0 : 1;
      if (floor) {
        CHECK(client == views);
        CHECK(server == 0);
      } else if (entry.at("bytes") == 1024) {  // small ones travel in the message
        CHECK(client >= 1 + views);
        CHECK(server >= 1);
      } else {
        const double limit = entry.at("transport") == "tls" ? 3 : 1.5;  // TLS decrypts into a copy
        CHECK(client >= views);
        CHECK(client <= limit + views);
        CHECK(server <= limit);
      }
    }
  }
}

/// The processes that `parent` has started.
std::vector<pid_t> children_of(pid_t parent) {
  const std::string id = std::to_string(parent);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;)
    children.push_back(child);
  return children;
}

/// Starts the program with calls that do not end, and waits until it has its servers.
struct Measuring {
  const Folder folder;
  ChildProcess program;
  std::vector<pid_t> children;

  explicit Measuring(std::size_t servers, const std::string& arguments = "")
      : program(start("--transport unix --bytes 16M --seconds 60 --contiguous yes " + arguments,
                      folder)) {
    while (children.size() < servers && !program.poll()) {
      children = children_of(program.pid());
      std::this_thread::sleep_for(5ms);
    }
    REQUIRE(children.size() == servers);
    std::this_thread::sleep_for(2s);  // for it to measure, rather than to start
  }
};

TEST_CASE("Ctrl-C ends tensor_benchmark and its servers soon") {
  Measuring measuring(2);
  measuring.program.signal(SIGINT);
  const auto end = measuring.program.wait_for(20s);
  REQUIRE(end);
  CHECK(end->code == 128 + SIGINT);
  for (const pid_t child : measuring.children)
    CHECK(::kill(child, 0) == -1);
}

TEST_CASE("tensor_benchmark says so when one of its servers is killed") {
  for (const bool floor : {true, false}) {  // the floor is measured first
    CAPTURE(floor);
    Measuring measuring(floor ? 2 : 1, floor ? "" : "--no-floor");
    ::kill(measuring.children[0], SIGKILL);
    const auto end = measuring.program.wait_for(30s);
    REQUIRE(end);
    CHECK(end->code == 1);
    CHECK_THAT(measuring.folder.text("error"), Catch::Contains("process was ended by signal 9"));
  }
}

}  // namespace tensor_benchmark_test
}  // namespace tensor_benchmark
