#include <new>

#include "tls/credentials.hpp"

namespace batchrpc::tls {

ContextPtr new_context() {
  constexpr std::size_t kMostCertificateBytes = 32 * 1024;
  const ContextPtr context(SSL_CTX_new(TLS_method()), &SSL_CTX_free);
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
  SSL_CTX_set_verify(made, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return context;
}

}  // namespace batchrpc::tls
