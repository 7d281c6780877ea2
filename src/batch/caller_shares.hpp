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

  /// Moves the newest calls of the caller that has most to `to`, until `excess` is free; nothing,
  /// and false, where that caller would be left with less than `newcomer`'s would have. `calls` is
  /// what the shares are of: it has for_each() and remove_if().
  template <class Calls>
  bool make_way(Calls& calls, const BatchCall& newcomer, Measure of, std::size_t excess,
                BatchCalls& to) const {
    const auto [caller, has] = greediest(of);
    const std::size_t fair = amount(newcomer.caller.get(), of) + amount(newcomer, of);
    if (has <= fair) return false;
    std::vector<const BatchCall*> those;
    calls.for_each([&those, most = caller](const BatchCall& call) {
      if (call.caller.get() == most && !call.pinned) those.push_back(&call);
    });
    if (!keep_newest(those, of, excess, has - fair)) return false;
    calls.remove_if(
        [&those](const BatchCall& call) {
          return std::find(those.begin(), those.end(), &call) != those.end();
        },
        to);
    return true;
  }

 private:
  struct Greediest {
    const PeerIdentity* caller = nullptr;
    std::size_t has = 0;
  };
  [[nodiscard]] Greediest greediest(Measure of) const;
  [[nodiscard]] std::size_t amount(const PeerIdentity* caller, Measure of) const;
  [[nodiscard]] static std::size_t amount(const BatchCall& call, Measure of) noexcept;
  static bool keep_newest(std::vector<const BatchCall*>& calls, Measure of, std::size_t excess,
                          std::size_t beyond_fair);

  // Shares of nothing stay while they are few: callers come again.
  static constexpr std::size_t kKept = 256;

  std::unordered_map<const PeerIdentity*, Share> shares_;
};

}  // namespace batchrpc::detail
