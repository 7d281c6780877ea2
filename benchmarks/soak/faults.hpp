#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "batchrpc/base/error.hpp"

namespace soak {

using Clock = std::chrono::steady_clock;

enum class FaultKind : unsigned char { kill, stop, long_stop, cut };

std::string to_string(FaultKind kind);

/// Something that the conductor has done to a process.
struct Fault {
  FaultKind kind = FaultKind::kill;
  std::string name{};  ///< the node
  Clock::time_point from{};
  Clock::time_point until = Clock::time_point::max();  ///< it runs and has joined again
};

/// What has been done lately, and what may have come of it. docs/errors.md, "When a peer is gone":
/// a cut ends no call, nor does a stop that is shorter than `dead_after`; a killed process ends
/// calls with PeerLost or NotSent (its objects are gone: NotFound), one that was silent for too
/// long also with Unknown.
class Faults {
 public:
  void begin(FaultKind kind, const std::string& name);
  /// Of what is the matter with this node, cuts apart.
  void end(const std::string& name);

  /// Whether a fault of one of these nodes (empty: of any) explains that a call, of an object
  /// perhaps, ended so at `time`.
  [[nodiscard]] bool explain(batchrpc::ErrorCode code, bool with_handle, Clock::time_point time,
                             const std::vector<std::string>& names) const;

  /// The latest of these nodes (empty: of any), with their times before `time`.
  [[nodiscard]] std::string describe(Clock::time_point time,
                                     const std::vector<std::string>& names) const;

  [[nodiscard]] std::uint64_t count(FaultKind kind) const {
    return counts_.at(static_cast<std::size_t>(kind));
  }

 private:
  std::deque<Fault> faults_;
  std::vector<std::uint64_t> counts_ = std::vector<std::uint64_t>(4);
};

}  // namespace soak
