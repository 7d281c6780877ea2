#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace batchrpc::tls {

/// Owners of OpenSSL's objects.
/// @{
template <auto free>
struct FreeBy {
  template <class T>
  void operator()(T* object) const noexcept {
    free(object);
  }
};
using BioPtr = std::unique_ptr<BIO, FreeBy<&BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, FreeBy<&EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, FreeBy<&X509_free>>;
using CrlPtr = std::unique_ptr<X509_CRL, FreeBy<&X509_CRL_free>>;
using StorePtr = std::unique_ptr<X509_STORE, FreeBy<&X509_STORE_free>>;
using ContextPtr = std::shared_ptr<SSL_CTX>;
using SslPtr = std::unique_ptr<SSL, FreeBy<&SSL_free>>;
/// @}

/// Returns the text of the oldest error in this thread's queue, and empties the queue. Empty if
/// there is none.
[[nodiscard]] std::string take_openssl_error();

}  // namespace batchrpc::tls
