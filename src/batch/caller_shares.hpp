#pragma once

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "batchrpc/batch/batch_row.hpp"

namespace batchrpc::detail {

/// Each caller's share of a batcher's room, so that no caller takes it all. Threads of this process
/// count as one caller. Not thread-safe.
class CallerShares {
 public:
  struct Share {
    std::size_t rows = 0;
    std::size_t bytes = 0;
  };
  /// The resource that is scarce.
  using Measure = std::size_t Share::*;

  void add(const BatchCall& call);
  void remove(const BatchCall& call);
  /// The call stays, but takes no bytes from now on.
  void forget_bytes(const BatchCall& call) { shares_[call.caller.get()].bytes -= call.bytes; }

  /// Returns the calls to drop so that `excess` becomes free for `newcomer`: the newest calls of
  /// the caller that has the most, as long as it has more than the newcomer's caller would have.
  /// `calls` are those that the shares count. Empty if that is not enough.
  template <class Calls>
  [[nodiscard]] std::vector<const BatchCall*> who_gives_way(const Calls& calls,
                                                            const BatchCall& newcomer, Measure of,
                                                            std::size_t excess) const {
    std::vector<const BatchCall*> those;
    const auto [caller, has] = greediest(of);
    const std::size_t fair = amount(newcomer.caller.get(), of) + amount(newcomer, of);
    if (has <= fair) return those;
    calls.for_each([&those, most = caller](const BatchCall& call) {
      if (call.caller.get() == most && !call.pinned) those.push_back(&call);
    });
    keep_newest(those, of, excess, has - fair);
    return those;
  }

 private:
  struct Greediest {
    const PeerIdentity* caller = nullptr;
    std::size_t has = 0;
  };
  [[nodiscard]] Greediest greediest(Measure of) const;
  [[nodiscard]] std::size_t amount(const PeerIdentity* caller, Measure of) const;
  [[nodiscard]] static std::size_t amount(const BatchCall& call, Measure of) noexcept;
  static void keep_newest(std::vector<const BatchCall*>& calls, Measure of, std::size_t excess,
                          std::size_t beyond_fair);

  // Empty shares are kept while there are few: callers return.
  static constexpr std::size_t kKept = 256;

  std::unordered_map<const PeerIdentity*, Share> shares_;
};

}  // namespace batchrpc::detail
