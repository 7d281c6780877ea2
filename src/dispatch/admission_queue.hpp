#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/log.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/metrics/node_metrics.hpp"
#include "batchrpc/transport/loop.hpp"
#include "call/drop_hook.hpp"
#include "call/incoming_call.hpp"
#include "dispatch/dispatched_call.hpp"
#include "dispatch/work_time.hpp"

namespace batchrpc {

/// The calls that a node has admitted, up to NodeOptions::limits.calls. They wait here until other
/// calls are answered. Thread-safe.
class AdmissionQueue final : public std::enable_shared_from_this<AdmissionQueue> {
 public:
  [[nodiscard]] static bool limits_anything(const CallLimits& limits) noexcept;

  /// Calls run on `workers`; `node` is for messages.
  AdmissionQueue(const CallLimits& limits, std::shared_ptr<Loop> loop,
                 std::shared_ptr<Executor> workers, Log log, std::string node);

  /// Gives the call a place until it is answered. If there is none, returns the error with which to
  /// refuse the call: Overloaded, or TimedOut.
  [[nodiscard]] std::exception_ptr accept(const std::string& function, detail::IncomingCall& call);
  /// Runs a call that has a place, when it is its turn.
  void run(DispatchedCall dispatched);
  /// Fails the calls that wait, and any that would wait later. Running calls keep their places
  /// until they are answered.
  void close(const std::exception_ptr& error);

  [[nodiscard]] QueueMetrics metrics();

 private:
  class Place;
  // The order of the calls that wait: by deadline, if the options say so, then by number.
  using Turn = std::pair<TimePoint, std::uint64_t>;
  using Hook = DropHook<AdmissionQueue, Turn>;
  friend Hook;
  struct Waiting {
    DispatchedCall dispatched;
    Duration work;  // how long it is expected to run
    std::unique_ptr<Hook> hook;
  };
  // The calls of one peer.
  struct Line {
    std::size_t accepted = 0;
    std::size_t running = 0;
    std::map<Turn, Waiting> waiting{};
    Duration work{};               // how long these are expected to run
    Duration ahead{};              // expected work before the call of expected_wait()
    std::optional<Turn> listed{};  // its entry in ready_
  };
  using Calls = std::vector<Waiting>;
  // The reason for which a call is refused, for its caller.
  struct Refusal {
    std::string why{};
    Duration retry_after{};
  };

  [[nodiscard]] std::optional<Refusal> refusal(const std::string& peer, Line& line, Duration work,
                                               std::optional<TimePoint> deadline, TimePoint now);
  [[nodiscard]] Duration expected_wait(const Line& line, TimePoint deadline);
  [[nodiscard]] bool has_room_to_run() const noexcept;
  [[nodiscard]] bool may_run(const Line& line) const noexcept;
  [[nodiscard]] Waiting take(Line& line, std::map<Turn, Waiting>::iterator at);
  void take_expired(TimePoint now, Calls& expired);
  void drop(const Turn& expiry);
  [[nodiscard]] Duration expected_of(const WorkTime& function) const noexcept;
  void list(Line& line);
  void answer_expired(Calls& expired) const;
  void start_next();
  void leave(Place& place);
  [[nodiscard]] std::string line_to_log(TimePoint now);

  const CallLimits limits_;
  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<Executor> workers_;
  const Log log_;
  const std::string node_;

  std::mutex mutex_;                   // guards the members below
  std::map<std::string, Line> lines_;  // by peer; only peers with calls
  std::map<Turn, Line*> ready_;        // lines that may run one more call, by their first call
  // All calls that wait, by their deadlines.
  std::map<Turn, std::pair<Line*, Turn>> expiries_;
  std::size_t accepted_ = 0;
  std::size_t running_ = 0;
  std::uint64_t next_number_ = 0;
  WorkTime work_of_all_;
  std::map<std::string, WorkTime> work_of_;  // by function
  std::uint64_t refused_ = 0;                // since the last log line about refusals
  std::uint64_t refused_in_all_ = 0;
  std::optional<TimePoint> logged_at_;
  std::exception_ptr closed_;  // the error for calls that come later; null: open
};

}  // namespace batchrpc
