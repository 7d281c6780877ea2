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

/// How a node's clock stands to the reference.
struct ClockOffset {
  std::string node{};         ///< its name
  Duration offset{};          ///< by how much its clock is ahead; zero if not known
  Duration error{};           ///< the offset is off by at most this, as long as clocks do not drift
  std::uint64_t samples = 0;  ///< calls that told of it: those between it and the node before it
                              ///< on the way from the reference
  bool known = false;         ///< calls link it to the reference
};

/// Finds from calls by how much the clocks of nodes differ, and brings their times to one clock,
/// the reference: that of the recording's node, or of who made the first call if no call is from or
/// to that node.
///
/// Each call that tells when it was sent and received, finished and replied says that the callee's
/// clock is ahead by ((received - sent) + (finished - replied)) / 2, give or take half of what it
/// spent on the way (NTP: RFC 5905, section 8). For each two nodes the interval is taken on which
/// most of their calls agree (Marzullo's algorithm, as in RFC 5905, section 11.2.1), from which
/// nodes follow along the way with the least error. Clocks that drift while they are recorded make
/// calls disagree: see call_times.hpp for what becomes of those.
class BATCHRPC_EXPORT ClockAlignment {
 public:
  /// Looks at all calls; needs the recording no longer.
  explicit ClockAlignment(const Recording& recording);

  /// A time of that node's clock, on the reference's. Stays as it is if it, or the node's offset,
  /// is not known.
  [[nodiscard]] TimePoint align(std::string_view node, TimePoint time) const noexcept;

  /// By how much the callee's clock is ahead of the caller's. Nothing if that is not known.
  [[nodiscard]] std::optional<Duration> callee_ahead(const CallRecord& call) const noexcept;

  /// Of each node that a call is from or to; the reference comes first, the others by name.
  [[nodiscard]] const std::vector<ClockOffset>& offsets() const noexcept { return offsets_; }
  /// Of one of them; null if there is none.
  [[nodiscard]] const ClockOffset* find(std::string_view node) const noexcept;

 private:
  std::vector<ClockOffset> offsets_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace batchrpc
