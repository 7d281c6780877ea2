#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "batchrpc/batch/batcher.hpp"
#include "batchrpc/testing.hpp"

namespace batchrpc::test {

/// A random life of a batcher in virtual time: arrivals, deadlines, cancellations, deaths, changed
/// settings, handlers that take their time, throw, or answer row by row. Notes what must not be.
class Schedule {
 public:
  explicit Schedule(std::uint64_t seed);
  ~Schedule();

  /// Lives it to the end.
  void run();
  /// What was wrong; empty: nothing.
  [[nodiscard]] const std::vector<std::string>& complaints() const { return complaints_; }
  /// Of the events that happened, those of each kind, to see that none is never there.
  [[nodiscard]] const std::map<std::string, int>& happened() const { return happened_; }

 private:
  struct Call {
    std::vector<int> rows;  // one, or many
    bool many = false;
    std::shared_ptr<const PeerIdentity> caller;
    int key = 0;
    int priority = 0;
    TimePoint arrived;
    std::optional<TimePoint> deadline;
    std::stop_source stop;
    std::size_t ahead = 0;  // rows that were queued or running when it came
    std::optional<TimePoint> started;
    bool caller_died = false;
    bool maybe_evicted = false;
    std::optional<Future<int>> one;
    std::optional<Future<std::vector<int>>> all;
  };
  struct Peer {
    std::shared_ptr<const PeerIdentity> identity;
    bool live = true;
  };

  [[nodiscard]] bool chance(double probability) {
    return std::uniform_real_distribution<>()(random_) < probability;
  }
  [[nodiscard]] std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }
  [[nodiscard]] Duration some_time(std::size_t most_us) {
    return std::chrono::microseconds(below(most_us));
  }
  [[nodiscard]] Host host();
  [[nodiscard]] BatchOptions some_options();
  void complain(const std::string& what) { complaints_.push_back(what); }

  void arrive();
  void die_or_return();
  void change_settings();
  Future<std::vector<Result<int>>> handle(std::vector<int> rows, const BatchInfo& info);
  void check_batch(const std::vector<int>& rows, const BatchInfo& info);
  void check_order(const std::vector<const Call*>& batch);
  void check_wait(const Call& call);
  void check_end(Call& call);

  std::mt19937_64 random_;
  std::shared_ptr<VirtualLoop> loop_;
  bool plain_;  // one key, no priorities, no changes, one batch at a time: waits can be bounded
  bool priorities_;
  bool held_ = false;  // callers come in turn
  BatchOptions options_;
  std::vector<Peer> peers_;
  std::map<std::uint64_t, std::function<void()>> handlers_;
  std::uint64_t next_handler_ = 1;
  std::optional<Batcher<int(int)>> batcher_;
  std::deque<Call> calls_;
  std::map<int, std::size_t> call_of_row_;
  std::size_t running_ = 0;
  std::size_t most_parallel_ = 1;
  Duration longest_handler_{};
  std::map<std::string, int> happened_;
  std::vector<std::string> complaints_;
};

}  // namespace batchrpc::test
