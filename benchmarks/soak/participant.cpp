#include "soak/participant.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "batchrpc/batchrpc.hpp"
#include "common/resident_memory.hpp"
#include "soak/callee.hpp"
#include "soak/link.hpp"
#include "soak/load.hpp"
#include "soak/pattern.hpp"
#include "soak/sockets.hpp"

namespace soak {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kTick = 10ms;
constexpr auto kBetweenCounts = 500ms;
constexpr auto kPatienceAtEnd = 30s;  // for the last messages

// Writes lines with the steady clock's seconds, which are the same in all processes.
batchrpc::LogSink log_to(const std::string& path) {
  struct File {
    std::mutex mutex;
    std::ofstream stream;
  };
  const auto file = std::make_shared<File>();
  file->stream.open(path);
  return [file](batchrpc::LogLevel /*level*/, std::string_view line) {
    const std::chrono::duration<double> now = Clock::now().time_since_epoch();
    const std::lock_guard lock(file->mutex);
    file->stream << std::fixed << std::setprecision(3) << now.count() << ' ' << line << std::endl;
  };
}

batchrpc::NodeOptions node_options(const Options& options) {
  const bool root = options.role == Role::root;
  batchrpc::NodeOptions node;
  node.name = name_of(options.role, options.index);
  node.rank = root ? 0 : -1;
  node.join = options.address;
  node.transports = {batchrpc::tcp_transport()};
  node.num_worker_threads = 2;
  node.logging.level = batchrpc::LogLevel::error;  // lost members are expected here
  if (!options.logs.empty()) {
    node.logging.level = batchrpc::LogLevel::debug;
    node.logging.sink =
        log_to(options.logs + '/' + node.name + '.' + std::to_string(options.life) + ".log");
  }
  return node;
}

class Participant {
 public:
  explicit Participant(const Options& options)
      : link_(options.link),
        node_(node_options(options)),
        callee_(node_, options, report_),
        load_(node_, options, report_) {
    load_.pause(true);
    // The agent may be missing if the root was started just before this node.
    if (options.role == Role::observer) node_.wait_for_peer(name_of(Role::agent, 0)).get();
  }
  ~Participant() { node_.shutdown(0ms); }  // its callbacks use members that are destroyed before it
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  int run() {
    report_.add("ready");
    while (!over_) {
      link_.wait(kTick);
      bool gone = false;
      while (const auto command = link_.receive(gone))
        obey(*command);
      if (gone) return 1;
      callee_.tick();
      load_.tick();
      if (paused_ && load_.is_idle() && !idle_) {
        idle_ = true;
        report_.add("idle");
      }
      count(kBetweenCounts);
      report_.flush(link_);
    }
    for (const std::string& left : node_.shutdown(5s))
      report_.failed("not finished at the end: " + left);
    count(0ms);
    const auto give_up = Clock::now() + kPatienceAtEnd;
    while (!report_.flush(link_) && Clock::now() < give_up)
      std::this_thread::sleep_for(kTick);
    return 0;
  }

 private:
  void obey(const std::string& command) {
    std::istringstream words(command);
    std::string verb;
    words >> verb;
    if (verb == "pause" || verb == "resume") {
      paused_ = verb == "pause";
      idle_ = false;
      load_.pause(paused_);
    } else if (verb == "measure") {
      std::ostringstream line;
      const OpenFiles files = open_files();
      line << "measured " << batchrpc_examples::resident_bytes() << ' '
           << batchrpc_examples::allocated_bytes() << ' ' << files.connections << ' '
           << files.others << ' ' << Tally::alive;
      report_.add(line.str());
    } else if (verb == "cut") {
      std::uint64_t number = 0;
      words >> number;
      if (cut_connection(number / 2, number % 2 == 0)) report_.add("cut");
    } else if (verb == "end") {
      over_ = true;
    }
  }

  // Reports how many calls have ended since the last time.
  void count(std::chrono::milliseconds interval) {
    if (Clock::now() < next_count_ && interval > 0ms) return;
    next_count_ = Clock::now() + interval;
    const std::uint64_t calls = load_.calls();
    if (calls > counted_) report_.add("calls " + std::to_string(calls - counted_));
    counted_ = calls;
  }

  Report report_;
  const Link link_;
  batchrpc::Node node_;
  Callee callee_;
  Load load_;
  bool paused_ = true;  // until all have joined
  bool idle_ = true;
  bool over_ = false;
  Clock::time_point next_count_{};
  std::uint64_t counted_ = 0;
};

}  // namespace

int run_participant(const Options& options) {
  std::signal(SIGINT, SIG_IGN);  // Ctrl-C reaches all processes; the conductor then ends this one
  (void)pattern();
  Participant participant(options);
  return participant.run();
}

}  // namespace soak
