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

/// A fault that the conductor has injected into a process.
struct Fault {
  FaultKind kind = FaultKind::kill;
  std::string name{};  ///< of the node
  Clock::time_point from{};
  Clock::time_point until = Clock::time_point::max();  ///< when it runs and has joined again
};

/// The recent faults and their possible effects. docs/errors.md, "When a peer is gone": a cut ends
/// no call, and neither does a stop shorter than `dead_after`. A killed process ends calls with
/// PeerLost or NotSent (its objects are gone: NotFound). A process that was silent for too long may
/// also end them with Unknown.
class Faults {
 public:
  void begin(FaultKind kind, const std::string& name);
  /// Ends the present fault of this node, except cuts.
  void end(const std::string& name);

  /// Whether a fault of one of these nodes (empty: of any) explains that a call ended with `code`
  /// at `time`. `with_handle`: the call was made through an RRef.
  [[nodiscard]] bool explain(batchrpc::ErrorCode code, bool with_handle, Clock::time_point time,
                             const std::vector<std::string>& names) const;

  /// The latest faults of these nodes (empty: of any), and how long before `time` each was.
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
