#pragma once

// The common part of the peers in C++: options, the server's process, a window of calls, the
// report.

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
  std::string mode = "calls";  // or echo: the payload is returned; push: it is not
  std::size_t bytes = 64;      // of a request, and of a reply in the modes calls and echo
  int in_flight = 1;
  std::string transport = "tcp";
  std::string api;  // one of the peer's APIs; the first by default
  double seconds = 1;
  std::string json;

  [[nodiscard]] bool payload_comes_back() const { return mode != "push"; }
};

/// Keeps a window of calls for some time, and counts and times them. A slot has one call at a time.
///
/// After a quarter of the seconds as warm-up, it counts calls for all of the seconds, and times
/// large ones. Small calls are timed in another quarter, so that the clock does not slow counted
/// calls down.
class Load {
 public:
  Load(const Options& options, pid_t server);

  /// Waits until the last call may be made. All slots must have been started, or start soon.
  void measure();
  /// A slot's call has ended. Returns whether the slot must make another one. Any thread may call
  /// it.
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

/// The two sides of a peer. The server runs in its own process, which has no threads before, and is
/// killed at the end.
struct Peer {
  std::string name{};
  std::string version{};
  std::vector<std::string> transports{};
  std::vector<std::string> apis{};
  /// Reports its address, and does not return.
  std::function<void(const Options&, const std::function<void(const std::string&)>& listening)>
      serve{};
  /// Makes calls as the load requires, until all have ended.
  std::function<void(const Options&, const std::string& address, Load&)> call{};
};

int run(const Peer& peer, int argc, const char* const* argv);

}  // namespace peer
