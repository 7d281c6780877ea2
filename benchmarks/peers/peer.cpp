#include "peer.hpp"

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

namespace peer {

namespace {

constexpr std::size_t kLarge = 16 * 1024;
constexpr int kKeptBytes = 1 << 30;

double seconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// The CPU time of all threads of a process.
double cpu_of(pid_t process) {
  clockid_t clock{};
  return ::clock_getcpuclockid(process, &clock) == 0 ? seconds_of(clock) : 0;
}

nlohmann::json percentile(const std::vector<double>& sorted, double percent) {
  if (sorted.empty()) return nullptr;
  const double place = static_cast<double>(sorted.size() - 1) * percent / 100;
  return sorted[static_cast<std::size_t>(place + 0.5)];
}

/// Ends the process when this object is destroyed.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  ~Child() {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  pid_t id_;
};

std::string read_line(int descriptor) {
  std::string line;
  char letter = 0;
  while (::read(descriptor, &letter, 1) == 1 && letter != '\n')
    line += letter;
  if (letter != '\n') throw std::runtime_error("the server has ended");
  return line;
}

pid_t start_server(const Peer& peer, const Options& options, int line_file, int others_end) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(others_end);
  try {
    peer.serve(options, [&](const std::string& address) {
      const std::string line = address + "\n";
      if (::write(line_file, line.data(), line.size()) < 0) ::_exit(1);
    });
  } catch (const std::exception& error) {
    std::cerr << peer.name << ": the server: " << error.what() << std::endl;
  }
  ::_exit(1);
}

void parse(CLI::App& app, const Peer& peer, Options& options) {
  app.add_option("--mode", options.mode)->check(CLI::IsMember({"calls", "echo", "push"}));
  app.add_option("--bytes", options.bytes)->check(CLI::Range(8UL, 1UL << 28));
  app.add_option("--in-flight", options.in_flight)->check(CLI::Range(1, 1024));
  app.add_option("--transport", options.transport)->check(CLI::IsMember(peer.transports));
  if (!peer.apis.empty()) {
    options.api = peer.apis.front();
    app.add_option("--api", options.api)->check(CLI::IsMember(peer.apis));
  }
  app.add_option("--seconds", options.seconds)->check(CLI::Range(0.01, 600.0));
  app.add_option("--json", options.json, "Also write the report to this file");
}

}  // namespace

Load::Load(const Options& options, pid_t server)
    : options_(options),
      server_(server),
      slots_(static_cast<std::size_t>(options.in_flight)),
      open_(options.in_flight) {}

Load::Point Load::now() const {
  return {.time = Clock::now(),
          .calls = calls_,
          .client_cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID),
          .server_cpu = cpu_of(server_)};
}

void Load::measure() {
  const std::chrono::duration<double> whole(options_.seconds);
  std::this_thread::sleep_for(whole / 4);
  const bool large = options_.bytes >= kLarge;
  timing_ = large;
  begin_ = now();
  std::this_thread::sleep_for(whole);
  end_ = now();
  timing_ = true;
  if (!large) std::this_thread::sleep_for(whole / 4);
  stopping_ = true;
}

bool Load::next(int slot) {
  calls_.fetch_add(1, std::memory_order_relaxed);
  if (timing_.load(std::memory_order_relaxed)) {
    Slot& own = slots_[static_cast<std::size_t>(slot)];
    const auto time = Clock::now();
    if (own.started != Clock::time_point{}) {
      own.us.push_back(std::chrono::duration<double, std::micro>(time - own.started).count());
    }
    own.started = time;
  }
  if (!stopping_.load(std::memory_order_relaxed)) return true;
  const std::lock_guard lock(mutex_);
  if (--open_ == 0) ended_.notify_all();
  return false;
}

void Load::wait_until_all_ended() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return open_ == 0; });
}

void Load::report(const std::string& system, const std::string& version) const {
  std::vector<double> us;
  for (const Slot& slot : slots_)
    us.insert(us.end(), slot.us.begin(), slot.us.end());
  std::sort(us.begin(), us.end());
  const double seconds = std::chrono::duration<double>(end_.time - begin_.time).count();
  const auto calls = static_cast<double>(end_.calls - begin_.calls);
  if (calls == 0) throw std::runtime_error("no call ended within the measured time");
  const double bytes =
      static_cast<double>(options_.bytes) * (options_.payload_comes_back() ? 2 : 1);
  const nlohmann::json entry = {
      {"system", system},
      {"version", version},
      {"api", options_.api},
      {"mode", options_.mode},
      {"bytes", options_.bytes},
      {"in_flight", options_.in_flight},
      {"transport", options_.transport},
      {"seconds", options_.seconds},
      {"calls_per_s", calls / seconds},
      {"gb_per_s", calls * bytes / seconds / 1e9},
      {"p50_us", percentile(us, 50)},
      {"p99_us", percentile(us, 99)},
      {"timed_calls", us.size()},
      {"cpu_us_per_call",
       {{"client", (end_.client_cpu - begin_.client_cpu) / calls * 1e6},
        {"server", (end_.server_cpu - begin_.server_cpu) / calls * 1e6}}}};
  std::cout << entry.dump() << std::endl;
  if (options_.json.empty()) return;
  std::ofstream file(options_.json);
  file << entry.dump(2) << "\n";
  file.close();
  if (!file) throw std::runtime_error("'" + options_.json + "' cannot be written");
}

int run(const Peer& peer, int argc, const char* const* argv) {
  Options options;
  CLI::App app("Calls of " + peer.name + " between two processes.");
  parse(app, peer, options);
  CLI11_PARSE(app, argc, argv);
  // Reuses the memory of large messages; otherwise malloc makes the kernel clear it each time.
  ::mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  ::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  try {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    const pid_t server = start_server(peer, options, ends[1], ends[0]);
    if (server < 0) throw std::runtime_error("no process");
    const Child child(server);
    ::close(ends[1]);
    const std::string address = read_line(ends[0]);
    Load load(options, server);
    peer.call(options, address, load);
    load.report(peer.name, peer.version);
  } catch (const std::exception& error) {
    std::cerr << peer.name << ": " << error.what() << std::endl;
    return 1;
  }
  return 0;
}

}  // namespace peer
