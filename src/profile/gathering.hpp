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

/// What the profilers of other nodes have recorded (Profiler::gather).
namespace batchrpc::profile {

/// What a peer has told, asked once.
struct Told {
  struct OfStore {
    std::vector<CallRecord> calls{};
    std::uint64_t left_out = 0;  ///< there, or here for want of room
  };
  std::map<std::uint64_t, OfStore> stores{};       ///< of profilers that live, by their numbers
  std::uint64_t asked_before = ~std::uint64_t{0};  ///< stores from there on were not asked
  std::vector<CallRecord> clock_samples{};
  std::uint64_t sampled = 1;
};

/// All that a peer has; of what is more than `max_events`, only how much that is.
[[nodiscard]] Future<Told> ask_for_recorded(std::shared_ptr<NodeCore> node, std::string peer,
                                            std::size_t max_events, TimePoint deadline);

/// What was gathered of a peer, however often it was asked: no more than `max_events`.
class GatheredPeer {
 public:
  explicit GatheredPeer(std::size_t max_events) : max_events_(max_events) {}

  /// By that incarnation of it.
  void take(std::uint64_t incarnation, Told&& told);
  [[nodiscard]] const Recording& recording() const noexcept { return recording_; }

 private:
  std::uint64_t keep(std::vector<CallRecord>&& calls);

  const std::size_t max_events_;
  Recording recording_;
  std::uint64_t incarnation_ = 0;
  std::map<std::uint64_t, std::uint64_t> left_out_;  // of stores that lived when it told last
  std::uint64_t left_out_before_ = 0;                // of those that are gone
};

}  // namespace batchrpc::profile
