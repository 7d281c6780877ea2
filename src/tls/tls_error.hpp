#pragma once

#include <openssl/ssl.h>

#include <system_error>

namespace batchrpc::tls {

/// Why a stream with TLS failed, besides what OpenSSL reports.
enum class TlsError {
  closed_early = 1,  ///< the peer closed the connection without saying so: data may be missing
  other_token,       ///< the peer's token, or its job, is another one
  no_token,          ///< the peer has not used a token
  not_tls,           ///< the peer does not use TLS
  bad_certificate,   ///< the names of the peer's certificate are not as they must be
  expired,           ///< the peer's certificate has expired
  revoked,           ///< the peer's certificate was revoked, or is not trusted anymore
  too_many,          ///< too many handshakes are under way
  no_credentials,    ///< the token or the certificates of this node cannot be read
  beyond_this_host,  ///< the peer is on another host, and this node has no token for a group
};

/// Returns the error code for `error`; its message is a sentence for people.
[[nodiscard]] std::error_code make_error_code(TlsError error) noexcept;

/// Returns the error code for the result of an operation of `ssl` that has failed. Empties the
/// error queue of this thread.
[[nodiscard]] std::error_code take_error(SSL& ssl, int result) noexcept;

}  // namespace batchrpc::tls

template <>
struct std::is_error_code_enum<batchrpc::tls::TlsError> : std::true_type {};
