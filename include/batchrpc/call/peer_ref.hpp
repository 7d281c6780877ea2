#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "batchrpc/call/node_options.hpp"

namespace batchrpc {

/// Names a peer in a call, by its name or rank. It is a view, and valid while the call is made.
class PeerRef {
 public:
  /// Names a peer by its name. The text must stay until the call has been made.
  /// @{
  PeerRef(std::string_view name) : name_(name) {}      // NOLINT: implicit
  PeerRef(const std::string& name) : name_(name) {}    // NOLINT: implicit
  PeerRef(const char* name) : name_(name) {}           // NOLINT: implicit
  PeerRef(const PeerInfo& peer) : name_(peer.name) {}  // NOLINT: implicit
  /// @}
  /// Names a peer by its rank, from 0. Calls to a negative rank, to one beyond an int, or to an
  /// empty name fail with NotFound.
  template <std::integral Rank>
  PeerRef(Rank rank)  // NOLINT: implicit
      : rank_(std::in_range<int>(+rank) ? static_cast<int>(rank) : -1) {}

  /// Tell how the peer is named, and that name or rank.
  /// @{
  [[nodiscard]] bool by_rank() const noexcept { return rank_ >= 0; }
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  /// @}

 private:
  std::string_view name_;
  int rank_ = -1;
};

}  // namespace batchrpc
