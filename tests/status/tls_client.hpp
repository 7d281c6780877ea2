#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "http_client.hpp"

namespace batchrpc::test {

struct FreeOpenSsl {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
};

/// A new key and a certificate that it has signed itself, as files that go with this object.
class SelfSigned {
 public:
  SelfSigned() {
    std::string name = (std::filesystem::temp_directory_path() / "batchrpc-page-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("there is no " + name);
    folder_ = name;
    const std::unique_ptr<EVP_PKEY, FreeOpenSsl> key(EVP_EC_gen("P-256"));
    const std::unique_ptr<X509, FreeOpenSsl> made(X509_new());
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
    X509_set_pubkey(made.get(), key.get());
    X509_NAME* const subject = X509_get_subject_name(made.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(made.get(), subject);
    if (X509_sign(made.get(), key.get(), EVP_sha256()) == 0)
      throw std::runtime_error("no signature");
    write(certificate(), [&](BIO* to) { PEM_write_bio_X509(to, made.get()); });
    write(this->key(), [&](BIO* to) {
      PEM_write_bio_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    write(encrypted_key(), [&](BIO* to) {
      std::array<char, 7> secret{"secret"};
      PEM_write_bio_PrivateKey(to, key.get(), EVP_aes_128_cbc(), nullptr, 0, nullptr,
                               secret.data());
    });
  }
  ~SelfSigned() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  SelfSigned(const SelfSigned&) = delete;
  SelfSigned& operator=(const SelfSigned&) = delete;

  [[nodiscard]] std::string certificate() const { return folder_ / "certificate.pem"; }
  [[nodiscard]] std::string key() const { return folder_ / "key.pem"; }
  /// The same key, which needs a passphrase.
  [[nodiscard]] std::string encrypted_key() const { return folder_ / "encrypted.pem"; }

 private:
  template <class Write>
  static void write(const std::string& path, const Write& write_to) {
    BIO* const file = BIO_new_file(path.c_str(), "w");
    if (file == nullptr) throw std::runtime_error("cannot write " + path);
    write_to(file);
    BIO_free(file);
  }

  std::filesystem::path folder_;
};

/// A client by TLS, of that version, which trusts one certificate.
class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port, const SelfSigned& trusted, int version = TLS1_3_VERSION)
      : connection_(port), context_(SSL_CTX_new(TLS_client_method())) {
    (void)std::signal(SIGPIPE, SIG_IGN);  // OpenSSL's own sockets raise it
    SSL_CTX_set_min_proto_version(context_.get(), version);
    SSL_CTX_set_max_proto_version(context_.get(), version);
    SSL_CTX_load_verify_file(context_.get(), trusted.certificate().c_str());
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set1_host(ssl_.get(), "localhost");
    SSL_set_fd(ssl_.get(), connection_.socket());
  }

  /// Returns whether the handshake was completed.
  [[nodiscard]] bool connect() const { return SSL_connect(ssl_.get()) == 1; }
  void send(const std::string& bytes) const {
    (void)SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
  }
  /// Makes the server read a message that has no bytes of a request.
  void update_key() const {
    SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
    (void)SSL_do_handshake(ssl_.get());
  }
  /// Returns what comes until the server ends it properly; else throws.
  [[nodiscard]] std::string read_all() const {
    std::string all;
    std::array<char, 8192> block;
    while (true) {
      std::size_t bytes = 0;
      const int result = SSL_read_ex(ssl_.get(), block.data(), block.size(), &bytes);
      if (result != 1) {
        if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_ZERO_RETURN) return all;
        throw std::runtime_error("the connection was cut");
      }
      all.append(block.data(), bytes);
    }
  }
  [[nodiscard]] const RawClient& connection() const noexcept { return connection_; }

 private:
  RawClient connection_;
  std::unique_ptr<SSL_CTX, FreeOpenSsl> context_;
  std::unique_ptr<SSL, FreeOpenSsl> ssl_;
};

}  // namespace batchrpc::test
