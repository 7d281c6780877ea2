#include "transport/socket_user.hpp"

#include <sys/socket.h>
#include <unistd.h>

namespace batchrpc::detail {
namespace {

/// An error's value is a user's id plus one, because zero means no error.
class OtherUserCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "batchrpc.other_user"; }
  [[nodiscard]] std::string message(int value) const override {
    return OtherUser{.uid = static_cast<uid_t>(value) - 1}.text();
  }
  [[nodiscard]] std::error_condition default_error_condition(
      int /*value*/) const noexcept override {
    return std::errc::permission_denied;
  }
};

}  // namespace

std::string OtherUser::text() const {
  return "the process on the other side runs as the user with the id " + std::to_string(uid) +
         ", and this one as " + std::to_string(::geteuid()) +
         ". Unix sockets connect only processes of one user: run both as the same, or use tcp://";
}

std::error_code OtherUser::error() const noexcept {
  static const auto& category = *new OtherUserCategory;  // nodes may live to the program's end
  return {static_cast<int>(uid + 1), category};
}

std::optional<OtherUser> other_user(int fd) noexcept {
  constexpr auto kUnknown = static_cast<uid_t>(-2);  // "nobody"
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return OtherUser{kUnknown};
  if (peer.uid == ::geteuid()) return std::nullopt;
  return OtherUser{peer.uid};
}

std::shared_ptr<const PeerProof> proof_of_user() {
  return std::make_shared<const PeerProof>(
      PeerProof{.identity = "user " + std::to_string(::geteuid())});
}

}  // namespace batchrpc::detail
