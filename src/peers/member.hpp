#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace batchrpc {

/// A node as it introduces itself to its group. Part of messages.
struct Member {
  std::string name{};
  std::int32_t rank = -1;
  std::uint64_t incarnation = 0;
  std::string host{};  ///< equal on two nodes that can reach each other by a Unix socket
  std::vector<std::string> addresses{};
};

/// The root's answer to a node that joins.
struct JoinReply {
  std::int32_t rank = -1;
  std::vector<Member> members{};
  std::string taken{};  // why the join is refused: a text that names the holder of the rank
};

/// Returns a text that identifies this machine, boot and network namespace.
[[nodiscard]] std::string host_identity();

}  // namespace batchrpc
