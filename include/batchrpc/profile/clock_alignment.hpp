#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/profile/recording.hpp"

namespace batchrpc {

/// The offset of a node's clock from the reference.
struct ClockOffset {
  std::string node{};         ///< its name
  Duration offset{};          ///< how far its clock is ahead; zero if not known
  Duration error{};           ///< the offset is off by at most this, as long as clocks do not drift
  std::uint64_t samples = 0;  ///< calls used: those on the last link of its path
  bool known = false;         ///< calls link the node to the reference
};

/// Estimates from calls how far the nodes' clocks differ, and converts their times to one clock,
/// the reference. The reference is the clock of the recording's node, or that of the first call's
/// caller if no call is from or to that node.
///
/// A call with all four times (sent, received, finished, replied) bounds the offset. The callee's
/// clock is ahead by ((received - sent) + (finished - replied)) / 2, plus or minus half of the time
/// spent on the wire (NTP: RFC 5905, section 8). For each pair of nodes, the interval on which most
/// of their calls agree is used (Marzullo's algorithm, as in RFC 5905, section 11.2.1). The other
/// nodes follow along the path with the least error. Clocks that drift during the recording make
/// calls disagree: call_times.hpp describes how those are handled.
class BATCHRPC_EXPORT ClockAlignment {
 public:
  /// Reads all calls; does not need the recording afterwards.
  explicit ClockAlignment(const Recording& recording);

  /// Converts a time on that node's clock to the reference's. Returns it unchanged if the time or
  /// the node's offset is not known.
  [[nodiscard]] TimePoint align(std::string_view node, TimePoint time) const noexcept;

  /// How far the callee's clock is ahead of the caller's. Empty if not known.
  [[nodiscard]] std::optional<Duration> callee_ahead(const CallRecord& call) const noexcept;

  /// The offset of each node that a call is from or to: the reference first, the others by name.
  [[nodiscard]] const std::vector<ClockOffset>& offsets() const noexcept { return offsets_; }
  /// The offset of one node; null if there is none.
  [[nodiscard]] const ClockOffset* find(std::string_view node) const noexcept;

 private:
  std::vector<ClockOffset> offsets_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace batchrpc
