#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace batchrpc::tls {

/// What a token gives a job: a pre-shared key for TLS 1.3 (RFC 8446, 2.2), and the name under which
/// the sides know it, which reveals nothing about the key.
struct JoinKey {
  std::string identity{};
  std::array<unsigned char, 32> key{};
};

/// Derives both from the token and the job, by HKDF with SHA-256 (RFC 5869). Throws InvalidArgument
/// for a token of less than 32 bytes; `source` names it for the message.
[[nodiscard]] JoinKey derive_join_key(std::string_view token, std::string_view job,
                                      const std::string& source);

/// Returns the token in the file, without the space around it. Throws InvalidArgument if it cannot
/// be read, if others than its owner have access to it, or if it belongs to another user.
[[nodiscard]] std::string read_token_file(const std::string& path);

/// Returns the token of this user, and makes it at first use: `.batchrpc/token` in the user's home
/// folder or, without one that can be written, `/tmp/batchrpc-UID/token`. Throws InvalidArgument
/// with the path and the reason.
[[nodiscard]] std::string token_of_user();
/// Throws InvalidArgument if there is such a file, and it cannot be used. Makes none.
void check_token_of_user();

}  // namespace batchrpc::tls
