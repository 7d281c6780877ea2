#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tls/openssl_pointers.hpp"

namespace batchrpc::tls::test {

/// A subject alternative name: GEN_URI, GEN_DNS, GEN_EMAIL, or GEN_IPADD with its four bytes.
struct AlternativeName {
  int type;
  std::string value;
};

inline void require(bool done) {
  if (!done) throw std::runtime_error("a test's certificate cannot be made");
}

inline NamesPtr list_of(const std::vector<AlternativeName>& names) {
  NamesPtr list(GENERAL_NAMES_new());
  for (const AlternativeName& name : names) {
    ASN1_STRING* const value =
        ASN1_STRING_type_new(name.type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
    require(ASN1_STRING_set(value, name.value.data(), static_cast<int>(name.value.size())) == 1);
    GENERAL_NAME* const entry = GENERAL_NAME_new();
    GENERAL_NAME_set0_value(entry, name.type, value);
    require(sk_GENERAL_NAME_push(list.get(), entry) > 0);
  }
  return list;
}

/// A certificate that is the same in each run: its key is known, and it is signed by that. Without
/// `names` it has no extension.
inline CertificatePtr named_certificate(const std::vector<AlternativeName>& names) {
  const std::array<unsigned char, 32> secret{1, 2, 3};
  const KeyPtr key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, secret.data(), secret.size()));
  CertificatePtr certificate(X509_new());
  const TimePtr time(ASN1_TIME_set(nullptr, 1'700'000'000));
  require(X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
          X509_set1_notBefore(certificate.get(), time.get()) == 1 &&
          X509_set1_notAfter(certificate.get(), time.get()) == 1 &&
          X509_set_pubkey(certificate.get(), key.get()) == 1);
  if (!names.empty()) {
    require(X509_add1_ext_i2d(certificate.get(), NID_subject_alt_name, list_of(names).get(), 1,
                              X509V3_ADD_DEFAULT) == 1);
  }
  require(X509_sign(certificate.get(), key.get(), nullptr) > 0);
  return certificate;
}

/// The certificate's bytes (DER).
inline std::string bytes_of(X509& certificate) {
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(&certificate, &bytes);
  require(size > 0);
  std::string text(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return text;
}

}  // namespace batchrpc::tls::test
