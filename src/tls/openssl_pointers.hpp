#pragma once

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
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
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, FreeBy<&X509_EXTENSION_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, FreeBy<&GENERAL_NAMES_free>>;
using RevokedPtr = std::unique_ptr<X509_REVOKED, FreeBy<&X509_REVOKED_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, FreeBy<&BN_free>>;
using IntegerPtr = std::unique_ptr<ASN1_INTEGER, FreeBy<&ASN1_INTEGER_free>>;
using TimePtr = std::unique_ptr<ASN1_TIME, FreeBy<&ASN1_TIME_free>>;
using ContextPtr = std::shared_ptr<SSL_CTX>;
using SslPtr = std::unique_ptr<SSL, FreeBy<&SSL_free>>;
/// @}

/// Returns the text of the oldest error in this thread's queue, and empties the queue. Empty if
/// there is none.
[[nodiscard]] std::string take_openssl_error();

}  // namespace batchrpc::tls
