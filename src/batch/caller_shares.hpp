#pragma once

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "batchrpc/batch/batch_row.hpp"

namespace batchrpc::detail {

/// How much of a batcher's room each caller has, so that none takes it all. Threads of this process
/// are one caller. Not thread-safe.
class CallerShares {
 public:
  struct Share {
    std::size_t rows = 0;
    std::size_t bytes = 0;
  };
  /// What there is too little of.
  using Measure = std::size_t Share::*;

  void add(const BatchCall& call);
  void remove(const BatchCall& call);
  /// The call, which stays, takes no bytes from now on.
  void forget_bytes(const BatchCall& call) { shares_[call.caller.get()].bytes -= call.bytes; }

  /// Who of `calls`, which the shares are of, is to go so that `excess` is free for `newcomer`: the
  /// newest calls of the caller that has most, as long as that has more than the newcomer's would
  /// have. Nobody, where that is not enough.
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

  // Shares of nothing stay while they are few: callers come again.
  static constexpr std::size_t kKept = 256;

  std::unordered_map<const PeerIdentity*, Share> shares_;
};

}  // namespace batchrpc::detail
