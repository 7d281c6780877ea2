#include <new>

#include "tls/credentials.hpp"

namespace batchrpc::tls {
namespace {

// Refuses a client whose key share (RFC 8446, 4.2.8) is of no group that nodes use. OpenSSL would
// ask it for a second hello, whose size nothing limits.
int check_key_share(SSL* ssl, int* alert, void* /*argument*/) {
  constexpr unsigned kX25519 = 0x001d;
  constexpr unsigned kP256 = 0x0017;
  const unsigned char* bytes = nullptr;
  std::size_t size = 0;
  *alert = SSL_AD_HANDSHAKE_FAILURE;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_key_share, &bytes, &size) != 1) {
    return SSL_CLIENT_HELLO_SUCCESS;  // not TLS 1.3, which OpenSSL refuses
  }
  for (std::size_t at = 2; at + 4 <= size;) {  // behind the size of the list: group, size, key
    const unsigned group = bytes[at] * 256U + bytes[at + 1];
    if (group == kX25519 || group == kP256) return SSL_CLIENT_HELLO_SUCCESS;
    at += 4 + bytes[at + 2] * 256U + bytes[at + 3];
  }
  return SSL_CLIENT_HELLO_ERROR;
}

}  // namespace

int no_passphrase(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*argument*/) noexcept {
  return -1;
}

ContextPtr new_context() {
  constexpr std::size_t kMostCertificateBytes = 8 * 1024;
  // Nodes may live to the program's end, and their threads use OpenSSL until then.
  static const int initialized = OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  if (initialized != 1) throw std::bad_alloc();
  ContextPtr context(SSL_CTX_new(TLS_method()), &SSL_CTX_free);
  SSL_CTX* const made = context.get();
  if (made == nullptr) throw std::bad_alloc();
  const bool good =
      SSL_CTX_set_session_id_context(made, kSessionContext.data(), kSessionContext.size()) == 1 &&
      SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_max_proto_version(made, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_num_tickets(made, 0) == 1 && SSL_CTX_set_max_early_data(made, 0) == 1 &&
      SSL_CTX_set1_groups_list(made, "X25519:P-256") == 1 &&
      SSL_CTX_set_ciphersuites(made,
                               "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                               "TLS_CHACHA20_POLY1305_SHA256") == 1;
  if (!good) throw std::bad_alloc();
  SSL_CTX_set_options(made, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(made, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_max_cert_list(made, kMostCertificateBytes);
  SSL_CTX_set_default_passwd_cb(made, &no_passphrase);
  SSL_CTX_set_client_hello_cb(made, &check_key_share, nullptr);
  SSL_CTX_set_verify(made, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return context;
}

}  // namespace batchrpc::tls
