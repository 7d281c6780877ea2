#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "batchrpc/testing.hpp"

namespace batchrpc::test {

/// What a network does to a program, and so what may become of its calls.
enum class Weather : unsigned char {
  calm,   ///< nothing: calls succeed, and soon
  cuts,   ///< connections break: nothing is lost by that
  stall,  ///< for a while that is shorter than dead_after, something stands still: nothing is lost
  storm,  ///< all that there is: peers may be lost, and so may calls
};

/// A call, as its caller knows it, and what has happened to it.
struct LedgerCall {
  std::uint64_t id = 0;
  std::string what{};  // function and hosts, for people
  int from = 0;
  std::uint64_t parent = 0;  // in which it was made; 0: none
  Duration made{};           // by the world's clock, as are all times
  Duration timeout = Duration::max();
  Duration quick = Duration::max();  // is answered so soon, if nothing is in the way
  int most_runs = 1;
  bool may_be_refused = false;  // Overloaded
  bool may_be_late = false;     // NotFound: its object may be gone
  bool throws = false;          // its function
  bool untold = false;          // nobody hears how it ends
  bool arrives = true;          // of an untold one: nobody takes it back

  bool caller_is_gone = false;          // was killed
  std::optional<Duration> cancelled{};  // when
  bool is_surely_cancelled = false;     // cancel() has said so
  int ran = 0;
  int ended = 0;
  std::optional<Duration> over{};
  bool never_ran = false;  // so the error said
};

/// The model that a random program is held against: what was called, what of it ran, how it ended,
/// and what of all that may not be. Used on one thread.
class Ledger {
 public:
  Ledger(SimulatedWorld& world, Weather weather) : world_(world), weather_(weather) {}

  /// Enters a call, whose id it gives.
  LedgerCall& make(LedgerCall call);
  [[nodiscard]] LedgerCall& at(std::uint64_t id) { return calls_.at(id - 1); }

  /// The function of a call has been started, in CallContext::current() if there is one.
  void starts(std::uint64_t id);
  /// A call by a handle to an object, the handle's `number`th, was started.
  void starts_in_order(std::uint64_t handle, std::uint64_t number);
  /// A call has ended so.
  void ends(std::uint64_t id, const Result<std::uint64_t>& result);
  /// All calls that this host has made are those of a dead one.
  void caller_died(int host);

  /// What a call's function answers.
  [[nodiscard]] static std::uint64_t answer_of(std::uint64_t id) {
    return id * 0x9e3779b97f4a7c15 + 1;
  }
  /// How much longer than without faults something may take.
  [[nodiscard]] Duration slack() const;
  [[nodiscard]] Weather weather() const noexcept { return weather_; }
  /// Whether all calls have ended, but those of callers that are gone.
  [[nodiscard]] bool all_ended() const;
  /// That the program is over: no call ends or runs after this.
  void close();

  void complain(const std::string& what) { complaints_.push_back(what); }
  [[nodiscard]] const std::vector<std::string>& complaints() const { return complaints_; }
  /// How many calls ended how.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& outcomes() const { return outcomes_; }

 private:
  void complain(const LedgerCall& call, const std::string& what);
  [[nodiscard]] bool is_allowed(const LedgerCall& call, ErrorCode code);
  [[nodiscard]] Duration deadline_of(const LedgerCall& call);
  [[nodiscard]] bool family_is_over(const LedgerCall& call);
  void check_time(const LedgerCall& call, bool timed_out);

  SimulatedWorld& world_;
  const Weather weather_;
  std::deque<LedgerCall> calls_;
  std::map<std::uint64_t, std::uint64_t> last_by_handle_;
  std::map<std::string, std::uint64_t> outcomes_;
  std::vector<std::string> complaints_;
};

}  // namespace batchrpc::test
