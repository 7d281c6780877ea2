#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "batchrpc/future/future.hpp"
#include "batchrpc/profile/recording.hpp"
#include "node/node_core.hpp"

/// Collects the recordings of other nodes' profilers (Profiler::gather).
namespace batchrpc::profile {

/// A peer's answer to one gather.
struct Told {
  struct OfStore {
    std::vector<CallRecord> calls{};
    std::uint64_t left_out = 0;  ///< dropped there, or here for lack of room
  };
  std::map<std::uint64_t, OfStore> stores{};       ///< of running profilers, by store number
  std::uint64_t asked_before = ~std::uint64_t{0};  ///< stores from this number on were not asked
  std::vector<CallRecord> clock_samples{};
  std::uint64_t sampled = 1;
};

/// Asks a peer for everything recorded. Beyond `max_events`, records are only counted.
[[nodiscard]] Future<Told> ask_for_recorded(std::shared_ptr<NodeCore> node, std::string peer,
                                            std::size_t max_events, TimePoint deadline);

/// The records gathered from a peer over all gathers: at most `max_events`.
class GatheredPeer {
 public:
  explicit GatheredPeer(std::size_t max_events) : max_events_(max_events) {}

  /// Adds an answer of that incarnation.
  void take(std::uint64_t incarnation, Told&& told);
  [[nodiscard]] const Recording& recording() const noexcept { return recording_; }

 private:
  std::uint64_t keep(std::vector<CallRecord>&& calls);

  const std::size_t max_events_;
  Recording recording_;
  std::uint64_t incarnation_ = 0;
  std::map<std::uint64_t, std::uint64_t> left_out_;  // of stores running at the last answer
  std::uint64_t left_out_before_ = 0;                // of stores that have ended
};

}  // namespace batchrpc::profile
