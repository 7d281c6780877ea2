#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "batchrpc/transport/loop.hpp"
#include "peers/peer_table.hpp"

namespace batchrpc {

class NodeCore;

/// Finds out when a node is quiet: it makes and answers no call, and its peers have received all
/// that it has sent. Looks now and then, so that calls pay nothing for it. Use it on the loop.
class Quiescence final : public std::enable_shared_from_this<Quiescence> {
 public:
  explicit Quiescence(NodeCore& core) : core_(core) {}

  /// Calls `handler` once the node is quiet, with the number of calls and notifications that it has
  /// made so far. Replaces the handler of an earlier call that still waits.
  void when_quiet(std::function<void(std::uint64_t calls)> handler);

 private:
  // What the node had done when it was idle.
  struct Mark {
    std::vector<PeerTable::SentMark> sent;
    std::uint64_t calls = 0;
  };

  void look();
  void look_later();
  [[nodiscard]] bool is_idle() const;

  NodeCore& core_;
  std::function<void(std::uint64_t)> handler_{};
  std::optional<Mark> mark_{};
  Duration pause_{};
  TimerId timer_ = 0;
};

}  // namespace batchrpc
