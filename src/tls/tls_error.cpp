#include "tls/tls_error.hpp"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <string>

namespace batchrpc::tls {
namespace {

// The values of the category: TlsError from 1 on, the results of X509_verify_cert from 1000 on, and
// OpenSSL's packed errors, which have the number of a library in their high bits.
constexpr int kVerifyResults = 1000;
constexpr int kPacked = 1 << 23;

std::string own_message(TlsError error) {
  switch (error) {
    case TlsError::closed_early:
      return "the connection ended without the peer's close_notify: it was cut, or the peer died";
    case TlsError::ended_handshake:
      return "the peer ended the connection before the TLS handshake was over; it may not use TLS "
             "(NodeOptions::security.insecure), or may be no node";
    case TlsError::other_token:
      return "the peer has another token, or another job; give all nodes of a group the same token "
             "file and NodeOptions::job";
    case TlsError::no_token:
      return "the peer has no token; give all nodes of a group the same token file";
    case TlsError::not_tls:
      return "the peer does not use TLS 1.3; it may have NodeOptions::security.insecure, or be no "
             "node";
    case TlsError::bad_certificate:
      return "the peer's certificate does not name a node as it must";
    case TlsError::expired:
      return "the peer's certificate has expired";
    case TlsError::floods:
      return "the peer sends records without data, such as new keys, again and again";
    case TlsError::no_credentials:
      return "this node's token or certificate cannot be used; its log has the reason";
    case TlsError::beyond_this_host:
      return "the peer is on another host, where the token of this user does not hold; set "
             "NodeOptions::security";
  }
  return "an unknown error";
}

// What people can do about the commonest reasons.
std::string packed_message(unsigned long code) {  // NOLINT(google-runtime-int): OpenSSL's type
  switch (ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0) {
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_TLSV1_ALERT_UNKNOWN_PSK_IDENTITY:
      return "the peer refuses this node's token, job or certificate; give all nodes of a group "
             "the "
             "same token file and NodeOptions::job, or certificates of one authority";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
      return "the peer says that this node's certificate is not valid, or not yet; compare the "
             "clocks";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "the peer says that this node's certificate has expired";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
      return "the peer says that this node's certificate was revoked";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "the peer does not know the authority of this node's certificate";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "one side has a certificate and the other has none; all nodes of a group need one";
    default:
      break;
  }
  const char* const reason = ERR_reason_error_string(code);
  return reason != nullptr ? "TLS: " + std::string(reason) : "TLS failed";
}

std::string verify_message(int result) {
  switch (result) {
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return "the peer's certificate is not valid: its authority is not in "
             "NodeOptions::security.authority";
    case X509_V_ERR_UNABLE_TO_GET_CRL:
      return "the peer's certificate cannot be checked: NodeOptions::security.revocations has no "
             "list of its authority";
    default:
      return std::string("the peer's certificate is not valid: ") +
             X509_verify_cert_error_string(result);
  }
}

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "batchrpc.tls"; }
  [[nodiscard]] std::string message(int value) const override {
    if (value < kVerifyResults) return own_message(static_cast<TlsError>(value));
    if (value >= kPacked) return packed_message(static_cast<unsigned>(value));
    return verify_message(value - kVerifyResults);
  }
};

const Category& category() noexcept {
  static const Category only;
  return only;
}

bool is_plain_text(int reason) noexcept {
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
         reason == SSL_R_HTTPS_PROXY_REQUEST || reason == SSL_R_UNSUPPORTED_PROTOCOL ||
         reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION || reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
         reason == SSL_R_UNEXPECTED_MESSAGE || reason == SSL_R_BAD_RECORD_TYPE ||
         reason == SSL_R_LENGTH_MISMATCH;
}

}  // namespace

std::error_code make_error_code(TlsError error) noexcept {
  return {static_cast<int>(error), category()};
}

bool is_about_certificates(std::error_code error) noexcept {
  if (error.category() != category() || error.value() < kPacked) return false;
  const auto code = static_cast<unsigned>(error.value());
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return false;
  const int reason = ERR_GET_REASON(code);
  return reason == SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM || reason == SSL_R_NO_SHARED_CIPHER ||
         reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE;
}

std::error_code verify_error(int result) noexcept { return {kVerifyResults + result, category()}; }

std::error_code take_error(SSL& ssl, int result) noexcept {
  const int kind = SSL_get_error(&ssl, result);
  const unsigned long packed = ERR_peek_error();  // NOLINT(google-runtime-int): OpenSSL's type
  ERR_clear_error();
  // NOLINTNEXTLINE(google-runtime-int): OpenSSL's type
  const long verified = SSL_get_verify_result(&ssl);
  if (verified != X509_V_OK && ERR_GET_REASON(packed) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return verify_error(static_cast<int>(verified));
  }
  if (kind == SSL_ERROR_SYSCALL || packed == 0) return TlsError::closed_early;
  const int reason = ERR_GET_LIB(packed) == ERR_LIB_SSL ? ERR_GET_REASON(packed) : 0;
  if (reason == SSL_R_BINDER_DOES_NOT_VERIFY) return TlsError::other_token;
  if (is_plain_text(reason) && SSL_is_init_finished(&ssl) == 0) return TlsError::not_tls;
  const int value = static_cast<int>(packed & 0x7fffffffU);
  return value >= kPacked ? std::error_code(value, category()) : TlsError::closed_early;
}

}  // namespace batchrpc::tls
