#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "call_benchmark/floor.hpp"
#include "call_benchmark/functions.hpp"
#include "call_benchmark/options.hpp"
#include "call_benchmark/report.hpp"
#include "call_benchmark/rounds.hpp"
#include "call_benchmark/stretch.hpp"
#include "common/process.hpp"

namespace call_benchmark {
namespace call_benchmark_test {

using namespace std::chrono_literals;
using batchrpc_examples::ChildProcess;

constexpr auto kProgram = BATCHRPC_BIN_DIR "/call_benchmark";

Options parse(const std::vector<std::string>& arguments) {
  std::vector<const char*> all{"call_benchmark"};
  for (const std::string& argument : arguments)
    all.push_back(argument.c_str());
  return parse_options(static_cast<int>(all.size()), all.data()).value();
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("batchrpc_call_benchmark_" + std::to_string(::getpid()) + "_" + name)) {}
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::string text() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path path_;
};

/// Runs the program to its end; what it wrote is in the files.
batchrpc_examples::ProcessExit run_program(const std::string& arguments, const TemporaryFile& out,
                                           const TemporaryFile& error) {
  const std::string command = "exec '" + std::string(kProgram) + "' " + arguments + " >'" +
                              out.path() + "' 2>'" + error.path() + "'";
  return ChildProcess({.arguments = {"-c", command}, .environment = {}, .program = "/bin/sh"})
      .wait();
}

TEST_CASE("call_benchmark measures everything by default, and what is named otherwise") {
  const Options all = parse({});
  CHECK(all.transports.size() == 4);
  CHECK((all.shapes == std::vector<Shape>{{1, 1}, {1, 64}, {1, 256}, {64, 1}}));
  CHECK(all.rounds == 5);

  const Options some =
      parse({"--transport", "unix,tcp", "--case", "scalars3", "--in-flight", "7,3x2", "--pinned",
             "no", "--seconds", "1.5", "--rounds", "2", "--floor", "busy"});
  CHECK((some.transports == std::vector<Transport>{Transport::unix_socket, Transport::tcp}));
  CHECK((some.cases == std::vector<Case>{Case::scalars3}));
  CHECK((some.shapes == std::vector<Shape>{{1, 7}, {3, 2}}));
  CHECK((some.pinned == std::vector<bool>{false}));
  CHECK(some.seconds == 1.5);
  CHECK((some.floors == std::vector<Floor>{Floor::blocking, Floor::busy}));  // for the ratios

  const Options polling = parse({"--busy-poll", "200", "--floor", "frame-sized"});
  CHECK(polling.busy_poll == 200);
  CHECK((polling.floors == std::vector<Floor>{Floor::busy, Floor::blocking, Floor::frame_sized}));
}

TEST_CASE("call_benchmark refuses a malformed command line and says what it takes") {
  const std::vector<std::vector<std::string>> malformed{
      {"--transport", "udp"},
      {"--transport", "tcp,"},
      {"--transport", ""},
      {"--transport", "tcp,tcp"},
      {"--transport"},
      {"--case", "payload65"},
      {"--in-flight", "0"},
      {"--in-flight", "1025"},
      {"--in-flight", "64x"},
      {"--in-flight", "x1"},
      {"--in-flight", "257x1"},
      {"--in-flight", "1 "},
      {"--pinned", "maybe"},
      {"--seconds", "0"},
      {"--seconds", "nan"},
      {"--seconds", "61"},
      {"--seconds", "1s"},
      {"--rounds", "0"},
      {"--busy-poll", "-1"},
      {"--busy-poll", "x"},
      {"--busy-poll", "1000001"},
      {"--rounds", "1.5"},
      {"--rounds", "1001"},
      {"--json", ""},
      {"--json", "/no/such/folder/file"},
      {"--no-such-option"},
      {"stray"},
  };
  for (const auto& arguments : malformed) {
    CAPTURE(arguments);
    CHECK_THROWS_WITH(parse(arguments),
                      Catch::Contains(arguments[0]) && Catch::EndsWith("; see --help"));
  }
}

TEST_CASE("call_benchmark ends with 2 and one line on stderr before it measures anything") {
  const TemporaryFile out("out");
  const TemporaryFile error("error");
  for (const std::string arguments : {"--rounds nine", "--json /no/such/folder/file"}) {
    CAPTURE(arguments);
    CHECK(run_program(arguments, out, error).code == 2);
    CHECK(out.text().empty());
    CHECK_THAT(error.text(), Catch::StartsWith("call_benchmark: ") && Catch::EndsWith("\n") &&
                                 Catch::Contains(arguments.substr(0, arguments.find(' '))));
    CHECK(error.text().find('\n') == error.text().size() - 1);
  }
  CHECK(run_program("--help", out, error).code == 0);
  CHECK_THAT(out.text(), Catch::Contains("--seconds"));
}

TEST_CASE("a JSON file that is there is left as it is until there is something to write") {
  const TemporaryFile old("old");
  const TemporaryFile fresh("fresh");
  std::ofstream(old.path()) << "old";
  parse({"--json", old.path()});
  parse({"--json", fresh.path()});
  CHECK(old.text() == "old");
  CHECK_FALSE(std::filesystem::exists(fresh.path()));
}

/// A floor's server on a thread, and connections to it.
class FloorHere {
 public:
  explicit FloorHere(Transport transport) : transport_(transport) {
    if (transport == Transport::inproc) {
      inproc_ = InprocAcceptor::make();
    } else {
      sockets_ = listen_on_socket(transport);
    }
    server_.emplace(inproc_ ? *inproc_ : *sockets_);
  }

  std::vector<std::unique_ptr<Channel>> connect(int count) {
    std::vector<std::unique_ptr<Channel>> channels;
    for (int i = 0; i < count; ++i) {
      channels.push_back(inproc_ ? inproc_->connect()
                                 : connect_socket(transport_, sockets_->address()));
    }
    return channels;
  }

 private:
  Transport transport_;
  std::unique_ptr<InprocAcceptor> inproc_;
  std::unique_ptr<Acceptor> sockets_;
  std::optional<FloorServerThread> server_;
};

TEST_CASE("the floor answers messages of any sizes, on one connection or many") {
  Interrupt interrupt;
  for (const Transport transport : {Transport::tcp, Transport::unix_socket, Transport::inproc}) {
    FloorHere floor(transport);
    for (const MessageSizes sizes : {MessageSizes{64, 64}, MessageSizes{176, 88}}) {
      for (const Shape shape : {Shape{1, 1}, Shape{1, 100}, Shape{5, 3}}) {
        for (const bool busy : {false, true}) {
          CAPTURE(to_string(transport), sizes.request, to_string(shape), busy);
          const auto client =
              make_floor_client(floor.connect(shape.connections), shape.in_flight, sizes, busy);
          const Stretch stretch(interrupt, 0.005);
          const Outcome outcome = client->run(stretch, true);
          const auto last = static_cast<std::size_t>(shape.connections * shape.in_flight);
          CHECK(outcome.rtt_us.size() == outcome.calls + last);
        }
      }
    }
  }
}

TEST_CASE("a sample counts and times calls, and none is missing from the percentiles") {
  Interrupt interrupt;
  FloorHere floor(Transport::unix_socket);
  const auto client = make_floor_client(floor.connect(1), 10, {}, false);
  Stretch stretch(interrupt, 0.05);
  const Outcome outcome = client->run(stretch, true);
  // Those that were under way when it was over are timed, but not counted.
  CHECK(outcome.late == 10);
  CHECK(outcome.rtt_us.size() == outcome.calls + 10);
  CHECK(
      std::all_of(outcome.rtt_us.begin(), outcome.rtt_us.end(), [](double us) { return us > 0; }));
  CHECK(stretch.seconds() >= 0.05);
}

TEST_CASE("an interrupt ends a sample at once") {
  Interrupt interrupt;
  FloorHere floor(Transport::inproc);
  const auto client = make_floor_client(floor.connect(1), 1, {}, false);
  interrupt.raise();
  CHECK_THROWS_AS(take_sample(*client, 60, true, std::nullopt, interrupt), Interrupted);
}

TEST_CASE("a ratio is the median of the rounds' ratios") {
  Row floor;
  floor.calls_per_s = {100, 200, 400};
  floor.p50_us = {10, 20, 40};
  floor.cpu_us = {{1, 1}, {1, 2}, {2, 3}};
  Row row;
  row.calls_per_s = {50, 180, 300};
  row.p50_us = {11, 24, 80};
  row.cpu_us = {{2, 1}, {3, 3}, {1, 0}};
  CHECK(ratio(row, floor).calls_per_s == Approx(.75));
  CHECK(ratio(row, floor).rtt == Approx(1.2));
  CHECK(ratio(row, floor).cpu == Approx(1.5));
}

TEST_CASE("frames are an envelope of 80 bytes and what the codec makes of arguments or result") {
  CHECK(frame_sizes(Case::scalars3) == MessageSizes{80 + 24, 80 + 8});
  CHECK(frame_sizes(Case::payload64) == MessageSizes{80 + 32 + 64, 80 + 32 + 64});
}

TEST_CASE("call_benchmark measures nodes that poll against the floor that does, on free CPUs") {
  const TemporaryFile out("out");
  const TemporaryFile error("error");
  const TemporaryFile json("json");
  const auto end = run_program(
      "--transport unix --in-flight 1 --case scalars3 --style get --handlers short --seconds 0.01 "
      "--rounds 1 --busy-poll 100 --floor blocking --json '" +
          json.path() + "'",
      out, error);
  CAPTURE(error.text());
  REQUIRE(end.success());
  for (const auto& entry : nlohmann::json::parse(json.text())) {
    CAPTURE(entry);
    CHECK(entry.at("busy_poll_us") == 100);
    const std::string measure = entry.at("pinned") == true ? "floor" : "floor_busy";
    CHECK(entry.at("to_floor").is_null() == (entry.at("system") == measure));
  }
}

TEST_CASE("call_benchmark writes a list with the floor and each way of calling, in every case") {
  const TemporaryFile out("out");
  const TemporaryFile error("error");
  const TemporaryFile json("json");
  const auto end = run_program(
      "--transport tcp,unix,inproc --in-flight 1,8,3x1 --seconds 0.01 --rounds 2 --json '" +
          json.path() + "'",
      out, error);
  CAPTURE(error.text());
  REQUIRE(end.success());
  CHECK_THAT(out.text(), Catch::Contains("x rate"));

  const auto entries = nlohmann::json::parse(json.text());
  REQUIRE(entries.is_array());
  const auto count = [&](const nlohmann::json& wanted) {
    return std::count_if(entries.begin(), entries.end(), [&](const nlohmann::json& entry) {
      return std::all_of(wanted.items().begin(), wanted.items().end(),
                         [&](const auto& item) { return entry.at(item.key()) == item.value(); });
    });
  };
  for (const std::string transport : {"tcp", "unix", "inproc"}) {
    for (const std::string which : {"payload64", "scalars3"}) {
      for (const bool pinned : {true, false}) {
        CAPTURE(transport, which, pinned);
        nlohmann::json common{{"transport", transport}, {"case", which}, {"pinned", pinned}};
        const auto with = [&](nlohmann::json more) {
          more.update(common);
          return count(more);
        };
        CHECK(with({{"system", "floor"}, {"connections", 1}, {"in_flight", 8}}) == 1);
        CHECK(with({{"system", "floor_busy"}}) == (pinned ? 0 : 3));
        CHECK(with({{"system", "batchrpc"}, {"in_flight", 8}}) == 4);
        CHECK(with({{"system", "batchrpc"}, {"connections", 3}, {"handlers", "short"}}) == 1);
      }
    }
  }
  for (const nlohmann::json& entry : entries) {
    CAPTURE(entry.dump());
    CHECK(entry.at("calls_per_s") >= 0);  // 0: two who poll, on a machine that is busy
    CHECK(entry.at("rtt_us").at("p50") > 0);
    CHECK(entry.at("rtt_us").at("p99") >= entry.at("rtt_us").at("p50"));
    CHECK(entry.at("to_floor").is_null() == (entry.at("system") == "floor"));
  }
}

TEST_CASE("call_benchmark measures memory and idle nodes instead when asked to") {
  const TemporaryFile out("out");
  const TemporaryFile error("error");
  const TemporaryFile json("json");
  const auto end = run_program(
      "--memory --idle --transport tcp,inproc --seconds 0.25 --json '" + json.path() + "'", out,
      error);
  CAPTURE(error.text());
  REQUIRE(end.success());
  const auto entries = nlohmann::json::parse(json.text());
  std::vector<std::string> measured;
  for (const nlohmann::json& entry : entries) {
    CAPTURE(entry.dump());
    const bool inproc = entry.at("transport") == "inproc";
    if (entry.at("case") == "idle") {
      CHECK(entry.at("cpu_share") >= 0);
      CHECK(entry.at("cpu_share") < .2);  // .0002 in truth, and 1 for a loop that spins
    } else if (entry.at("what") == "connection") {
      CHECK(entry.at("bytes") > 1000);
      CHECK(entry.at("bytes") <= 36 * 1024);
    } else {
      CHECK(entry.at("bytes") > 100);
      CHECK(entry.at("bytes") <= (inproc ? 2 * 544 : 544));  // inproc: of both sides together
    }
    measured.push_back(entry.value("what", "idle") + " " + entry.at("side").get<std::string>());
  }
  CHECK(measured == std::vector<std::string>{"connection calling", "connection called",
                                             "pending call calling", "pending call called",
                                             "pending call both", "idle calling", "idle called",
                                             "idle both"});
}

TEST_CASE("call_benchmark measures how many calls are answered in time in an overload") {
  const TemporaryFile out("out");
  const TemporaryFile error("error");
  const TemporaryFile json("json");
  const auto end =
      run_program("--overload --seconds 0.5 --rounds 1 --json '" + json.path() + "'", out, error);
  CAPTURE(error.text());
  REQUIRE(end.success());
  const auto entries = nlohmann::json::parse(json.text());
  REQUIRE(entries.size() == 2);
  CHECK(entries.at(0).at("call_limits") == true);
  CHECK(entries.at(1).at("call_limits") == false);
  for (const nlohmann::json& entry : entries) {
    CAPTURE(entry.dump());
    CHECK(entry.at("case") == "overload");
    CHECK(entry.at("capacity_per_s") > 0);
    const int offered = entry.at("offered");
    const int answered = entry.at("answered");
    const int refused = entry.at("refused");
    const int timed_out = entry.at("timed_out");
    CHECK(offered > 0);
    CHECK(answered + refused + timed_out == offered);
    CHECK((refused == 0 || entry.at("call_limits") == true));
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

TEST_CASE("Ctrl-C ends call_benchmark and its children soon") {
  ChildProcess program({.arguments = {"--transport", "tcp", "--seconds", "60"},
                        .environment = {{"LC_ALL", "C"}},
                        .program = kProgram});
  std::vector<pid_t> children;
  while (children.size() < 2 && !program.poll()) {
    children = children_of(program.pid());
    std::this_thread::sleep_for(5ms);
  }
  std::this_thread::sleep_for(100ms);
  program.signal(SIGINT);
  const auto end = program.wait_for(10s);
  REQUIRE(end);
  CHECK(end->code == 128 + SIGINT);
  for (const pid_t child : children)
    CHECK(::kill(child, 0) == -1);
}

}  // namespace call_benchmark_test
}  // namespace call_benchmark
