#pragma once

// What the peers in C++ share: options, the server's process, a window of calls, the report.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <sys/types.h>

namespace peer {

struct Options {
  std::string mode = "calls";  // or echo: the payload comes back; push: it does not
  std::size_t bytes = 64;      // of a request, and in the modes calls and echo of a reply
  int in_flight = 1;
  std::string transport = "tcp";
  std::string api;  // of those that the peer has, the first one where none is named
  double seconds = 1;
  std::string json;

  [[nodiscard]] bool payload_comes_back() const { return mode != "push"; }
};

/// Keeps a window of calls for a while, and counts and times those. A slot is one call at a time.
///
/// A quarter of the seconds warms up; then calls are counted, and large ones timed, for all of the
/// seconds; small ones are timed in a quarter more, so that the clock costs no counted call
/// anything.
class Load {
 public:
  Load(const Options& options, pid_t server);

  /// Takes the time, until the last call may be made. All slots have been started, or will soon be.
  void measure();
  /// A slot's call has ended. Whether it is to make another one; from any thread.
  [[nodiscard]] bool next(int slot);
  [[nodiscard]] bool all_ended() const { return open_ == 0; }
  void wait_until_all_ended();

  void report(const std::string& system, const std::string& version) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Point {
    Clock::time_point time{};
    std::uint64_t calls = 0;
    double client_cpu = 0;
    double server_cpu = 0;
  };
  struct alignas(64) Slot {
    Clock::time_point started{};
    std::vector<double> us{};
  };

  [[nodiscard]] Point now() const;

  const Options& options_;
  const pid_t server_;
  std::vector<Slot> slots_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<bool> timing_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<int> open_;
  std::mutex mutex_{};
  std::condition_variable ended_{};
  Point begin_{};
  Point end_{};
};

/// A peer's two sides. The server runs in a process of its own, which has no threads before, and is
/// killed at the end.
struct Peer {
  std::string name{};
  std::string version{};
  std::vector<std::string> transports{};
  std::vector<std::string> apis{};
  /// Tells where it listens, and does not return.
  std::function<void(const Options&, const std::function<void(const std::string&)>& listening)>
      serve{};
  /// Makes calls as the load asks for until all have ended.
  std::function<void(const Options&, const std::string& address, Load&)> call{};
};

int run(const Peer& peer, int argc, const char* const* argv);

}  // namespace peer
