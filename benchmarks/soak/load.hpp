#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "soak/callee.hpp"
#include "soak/link.hpp"
#include "soak/options.hpp"

namespace soak {

/// Calls other nodes, a few calls at a time, and checks the results. tick() and everything not
/// marked as thread-safe belong to one thread. It must outlive the node's shutdown.
class Load {
 public:
  Load(const batchrpc::Node& node, const Options& options, Report& report);

  /// Starts new calls for those that have ended, and finds calls that do not end.
  void tick();

  void pause(bool paused) { paused_ = paused; }
  /// Whether no call is in flight.
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] std::uint64_t calls() const { return ended_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Room for one call in flight.
  struct Slot {
    std::string peer;
    std::atomic<std::uint64_t> call{0};  // 0: none
    Clock::time_point started{};
    std::atomic<std::int64_t> not_before{0};  // set after an error
    const char* what = "";
    bool stuck = false;
    bool may_be_cancelled = false;
    bool may_time_out = false;
    bool with_handle = false;
    bool involves_others = false;
    batchrpc::Future<std::uint64_t> to_cancel{};
    Clock::time_point cancel_at{};
  };

  void start(Slot& slot);
  void start_echo(Slot& slot);
  void start_linger(Slot& slot);
  void start_batch(Slot& slot);
  void start_square(Slot& slot);
  void start_object(Slot& slot);
  void start_passing_on(Slot& slot);
  void notify(Slot& slot);

  CallId new_id(const Slot& slot);
  void begin(Slot& slot, const char* what);
  template <class T, class Right>
  void watch(Slot& slot, const batchrpc::Future<T>& future, Right right);
  void end(Slot& slot, std::uint64_t call, const std::exception_ptr& error, bool right);
  void report_error(const Slot& slot, const std::exception_ptr& error);
  std::uint64_t random(std::uint64_t below) { return random_() % below; }

  const batchrpc::Node& node_;
  const Options& options_;
  const bool is_agent_;
  Report& report_;
  std::mt19937_64 random_;
  std::deque<Slot> slots_;
  std::vector<std::uint64_t> numbers_;  // of the latest call to each node
  bool paused_ = false;
  std::uint64_t next_ = 0;
  std::atomic<std::uint64_t> ended_{0};
};

}  // namespace soak
