#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "common/process.hpp"
#include "soak/faults.hpp"
#include "soak/link.hpp"
#include "soak/options.hpp"

namespace soak {

/// The agent's report about itself while nothing is in flight.
struct Measured {
  std::int64_t memory = 0;     ///< resident, in bytes
  std::int64_t allocated = 0;  ///< not freed, in bytes; 0: not known
  int connections = 0;
  int files = 0;    ///< other descriptors
  int objects = 0;  ///< objects behind remote references
};

/// Starts all processes, injects faults, and collects their reports.
class Conductor {
 public:
  explicit Conductor(const Options& options);
  /// Ends all processes.
  ~Conductor();
  Conductor(const Conductor&) = delete;
  Conductor& operator=(const Conductor&) = delete;

  /// Returns whether nothing failed, after it has printed the failures and a summary. Throws
  /// batchrpc::Interrupted.
  bool run();

 private:
  struct Child {
    Options options{};
    std::string name{};
    Link link{};
    std::optional<batchrpc_examples::ChildProcess> process{};
    bool ready = false;
    bool idle = false;
    bool ending = false;
    std::optional<Clock::time_point> start_at{};
    std::optional<Clock::time_point> continue_at{};

    [[nodiscard]] bool undisturbed() const { return ready && !start_at && !continue_at; }
  };

  void start_all();
  void notify_all(const std::string& command) const;
  void start(Child& child);
  void kill(Child& child);
  void stop(Child& child, std::chrono::milliseconds time);
  void cut(Child& child);
  void disturb();
  void disturb_until(Clock::time_point end);
  Measured measure();
  void end_all();
  void compare(const Measured& before, const Measured& after);
  void summarize(const Measured& before, const Measured& after) const;

  // Lets 10 ms pass: reads all reports, and starts and continues processes whose time has come.
  void step();
  template <class Condition>
  bool wait_until(std::chrono::milliseconds patience, Condition condition);
  void hear(Child& child);
  void hear_error(const Child& child, const std::string& line);
  void failed(const std::string& what);

  Child& root() { return children_[0]; }
  Child& agent() { return children_[1]; }
  Child& observer(std::uint64_t i) { return children_[2 + static_cast<std::size_t>(i)]; }
  std::uint64_t random(std::uint64_t below) { return random_() % below; }

  const Options options_;
  const Clock::time_point begin_ = Clock::now();
  std::string folder_;
  std::mt19937_64 random_;
  batchrpc::InterruptFlag interrupt_;
  std::deque<Child> children_;
  Faults faults_;
  bool started_ = false;  // all were started once
  std::optional<Measured> measured_;
  std::uint64_t calls_ = 0;
  std::uint64_t errors_ = 0;
  std::uint64_t failures_ = 0;
};

}  // namespace soak
