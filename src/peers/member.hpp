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

/// The limits of what a node tells of itself. The root refuses more, because it passes all of it on
/// to each member.
/// @{
inline constexpr std::size_t kMaxAddresses = 16;
inline constexpr std::size_t kMaxAddressBytes = 256;
inline constexpr std::size_t kMaxHostBytes = 256;
inline constexpr std::int32_t kMaxWorldSize = 1 << 20;  ///< ranks are lower
/// @}

/// Throws JoinFailed if the member is beyond these limits.
void check_size(const Member& member);

/// The root's answer to a node that joins.
struct JoinReply {
  std::int32_t rank = -1;
  std::vector<Member> members{};
  std::string taken{};  // why the join is refused: a text that names the holder of the rank
};

/// Returns a text that identifies this machine, boot and network namespace.
[[nodiscard]] std::string host_identity();

}  // namespace batchrpc
