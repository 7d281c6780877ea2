#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "batchrpc/transport/stream.hpp"

namespace batchrpc::detail {

/// The other side of a Unix socket, unless it may be there. Only processes of the same effective
/// user may: anybody on the machine can find an abstract socket and connect to it. Root is no
/// exception, because it needs none: it may run as that user.
struct OtherUser {
  uid_t uid = 0;

  /// Returns what is wrong and what to do.
  [[nodiscard]] std::string text() const;
  /// Returns an error with that text. It counts as std::errc::permission_denied.
  [[nodiscard]] std::error_code error() const noexcept;
};

/// Returns the user on the other side of a connected Unix socket; empty if that is the user of this
/// process. The user is that of the time at which the other side listened or connected.
[[nodiscard]] std::optional<OtherUser> other_user(int fd) noexcept;

/// Returns what a connected Unix socket proves if other_user() finds none: its peer is this user.
[[nodiscard]] std::shared_ptr<const PeerProof> proof_of_user();

}  // namespace batchrpc::detail
