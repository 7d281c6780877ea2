#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <system_error>

namespace batchrpc::tls {

/// Why a stream with TLS failed, besides what OpenSSL reports.
enum class TlsError {
  closed_early = 1,  ///< the peer closed the connection without saying so: data may be missing
  ended_handshake,   ///< the peer closed the connection before the handshake was over
  other_token,       ///< the peer's token, or its job, is another one
  no_token,          ///< the peer has not used a token
  not_tls,           ///< the peer does not use TLS
  bad_certificate,   ///< the names of the peer's certificate are not as they must be
  expired,           ///< the peer's certificate has expired
  floods,            ///< the peer changes its keys again and again
  no_credentials,    ///< the token or the certificates of this node cannot be read
  beyond_this_host,  ///< the peer is on another host, and this node has no token for a group
};

/// Returns the error code for `error`; its message is a sentence for people.
[[nodiscard]] std::error_code make_error_code(TlsError error) noexcept;

/// Whether a side that has no certificate was asked for one.
[[nodiscard]] bool is_about_certificates(std::error_code error) noexcept;

/// Returns the error code for a result of X509_verify_cert() other than X509_V_OK.
[[nodiscard]] std::error_code verify_error(int result) noexcept;

/// Empties the error queue of this thread, as each operation needs it. An empty queue costs little.
inline void clear_openssl_errors() noexcept {
  if (ERR_peek_last_error() != 0) ERR_clear_error();
}

/// Returns the error code for the result of an operation of `ssl` that has failed. Empties the
/// error queue of this thread.
[[nodiscard]] std::error_code take_error(SSL& ssl, int result) noexcept;

}  // namespace batchrpc::tls

template <>
struct std::is_error_code_enum<batchrpc::tls::TlsError> : std::true_type {};
