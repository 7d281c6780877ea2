#include <openssl/crypto.h>

#include <new>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "tls/credentials.hpp"
#include "tls/join_token.hpp"
#include "tls/tls_error.hpp"

namespace batchrpc::tls {
namespace {

constexpr unsigned char kCipher[] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256
// What the app data of an SSL is when its peer has named a token that this node does not have.
int other_token_marker = 0;  // NOLINT: only its address is used

const JoinKey& key_of(SSL* ssl) {
  return *static_cast<const JoinKey*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
}

// The pre-shared key as OpenSSL wants it; null without memory.
SSL_SESSION* new_session(SSL* ssl) {
  SSL_SESSION* const session = SSL_SESSION_new();
  const JoinKey& key = key_of(ssl);
  if (session != nullptr &&
      SSL_SESSION_set1_master_key(session, key.key.data(), key.key.size()) == 1 &&
      SSL_SESSION_set1_id_context(session, kSessionContext.data(), kSessionContext.size()) == 1 &&
      SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kCipher)) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

int offer_key(SSL* ssl, const EVP_MD* digest, const unsigned char** identity, std::size_t* size,
              SSL_SESSION** session) {
  *identity = nullptr;
  *size = 0;
  *session = nullptr;
  if (digest != nullptr && EVP_MD_get_type(digest) != NID_sha256) return 1;
  *session = new_session(ssl);
  if (*session == nullptr) return 0;
  const std::string& name = key_of(ssl).identity;
  *identity = reinterpret_cast<const unsigned char*>(name.data());
  *size = name.size();
  return 1;
}

int find_key(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  *session = nullptr;
  const std::string& name = key_of(ssl).identity;
  if (size != name.size() || CRYPTO_memcmp(identity, name.data(), size) != 0) {
    SSL_set_app_data(ssl, &other_token_marker);
    return 1;
  }
  *session = new_session(ssl);
  return *session != nullptr ? 1 : 0;
}

class TokenCredentials final : public Credentials {
 public:
  explicit TokenCredentials(JoinKey key) : key_(std::move(key)), context_(new_context()) {
    SSL_CTX_set_app_data(context_.get(), &key_);
    SSL_CTX_set_psk_use_session_callback(context_.get(), &offer_key);
    SSL_CTX_set_psk_find_session_callback(context_.get(), &find_key);
    if (SSL_CTX_set_ciphersuites(context_.get(), "TLS_AES_128_GCM_SHA256") != 1)
      throw std::bad_alloc();
  }
  ~TokenCredentials() override { OPENSSL_cleanse(key_.key.data(), key_.key.size()); }

  [[nodiscard]] ContextPtr context() const override { return context_; }

  // OpenSSL reports a pre-shared key as a session that was resumed. Without one the context would
  // have demanded a certificate that it trusts, and it trusts none.
  [[nodiscard]] ProvenPeer prove(SSL& ssl) const override {
    if (SSL_session_reused(&ssl) != 1) throw PermissionDenied("the peer has not used the token");
    return {.proof = proof_};
  }

  [[nodiscard]] std::error_code explain(SSL& ssl, std::error_code error) const override {
    if (SSL_get_app_data(&ssl) == &other_token_marker) return TlsError::other_token;
    // Without a token that both know, one side asks the other for a certificate.
    if (SSL_get_verify_result(&ssl) != X509_V_OK || is_about_certificates(error))
      return TlsError::no_token;
    return error;
  }

 private:
  JoinKey key_;  // the context's callbacks use it
  const ContextPtr context_;
  const std::shared_ptr<const PeerProof> proof_ =
      std::make_shared<const PeerProof>(PeerProof{.identity = "token"});
};

}  // namespace

std::shared_ptr<Credentials> token_credentials(const std::string& token, const std::string& source,
                                               const Owner& owner) {
  return std::make_shared<TokenCredentials>(derive_join_key(token, owner.job, source));
}

}  // namespace batchrpc::tls
