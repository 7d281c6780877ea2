#include "tls/make_certificate.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/hex.hpp"
#include "base/random_bits.hpp"
#include "batchrpc/base/error.hpp"
#include "tls/certificate_name.hpp"
#include "tls/openssl_pointers.hpp"

namespace batchrpc::tls {
namespace {

[[noreturn]] void fail_to(const std::string& what) {
  const std::string why = take_openssl_error();
  throw std::runtime_error("OpenSSL cannot " + what + (why.empty() ? "" : ": " + why));
}
void require_openssl(bool done, const char* what) {
  if (!done) fail_to(what);
}
/// Takes the object that OpenSSL has made.
template <class Owner>
Owner made(typename Owner::pointer object, const char* what) {
  if (object == nullptr) fail_to(what);
  return Owner(object);
}

// ---- PEM

// Encrypted keys are refused; OpenSSL's own function would ask the terminal for a password.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*context*/) { return -1; }

BioPtr reader_of(const std::string& pem) {
  if (pem.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw InvalidArgument("a PEM text of 2 GiB or more cannot be read");
  return made<BioPtr>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), "read a text");
}

template <class Write>
std::string pem_by(Write write, const char* what) {
  const auto bio = made<BioPtr>(BIO_new(BIO_s_mem()), what);
  require_openssl(write(bio.get()) == 1, what);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);  // NOLINT(google-runtime-int)
  return {text, static_cast<std::size_t>(size)};
}

std::string pem_of(X509& certificate) {
  return pem_by([&](BIO* bio) { return PEM_write_bio_X509(bio, &certificate); },
                "write a certificate");
}
std::string pem_of(EVP_PKEY& key) {
  return pem_by(
      [&](BIO* bio) {
        return PEM_write_bio_PrivateKey(bio, &key, nullptr, nullptr, 0, nullptr, nullptr);
      },
      "write a key");
}

[[noreturn]] void refuse_input(const std::string& what) {
  const std::string why = take_openssl_error();
  throw InvalidArgument(what + (why.empty() ? "" : " (" + why + ")"));
}

struct Authority {
  CertificatePtr certificate;
  KeyPtr key;
};
Authority read_authority(const KeyPair& pair) {
  Authority authority{.certificate = CertificatePtr(PEM_read_bio_X509(
                          reader_of(pair.certificate).get(), nullptr, no_password, nullptr)),
                      .key = nullptr};
  if (!authority.certificate)
    refuse_input("the authority's certificate cannot be read; it must be a certificate as PEM");
  authority.key.reset(
      PEM_read_bio_PrivateKey(reader_of(pair.key).get(), nullptr, no_password, nullptr));
  if (!authority.key) {
    refuse_input(
        "the authority's key cannot be read; it must be a private key as PEM, not encrypted");
  }
  if (X509_check_private_key(authority.certificate.get(), authority.key.get()) != 1)
    refuse_input("the authority's key belongs to another certificate");
  return authority;
}

/// Reads the next certificate; null at the end of the text.
CertificatePtr next_certificate(BIO& pem) {
  CertificatePtr certificate(PEM_read_bio_X509(&pem, nullptr, no_password, nullptr));
  if (certificate) return certificate;
  const unsigned long error = ERR_peek_last_error();  // NOLINT(google-runtime-int)
  if (ERR_GET_LIB(error) != ERR_LIB_PEM || ERR_GET_REASON(error) != PEM_R_NO_START_LINE)
    refuse_input("a certificate to revoke cannot be read");
  (void)take_openssl_error();
  return nullptr;
}

// ---- parts

KeyPtr new_key() {
  return made<KeyPtr>(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"), "make a key");
}

/// The digest with which this key signs; null for keys that have their own.
const EVP_MD* digest_for(const EVP_PKEY& key) {
  const bool has_own = EVP_PKEY_is_a(&key, "ED25519") == 1 || EVP_PKEY_is_a(&key, "ED448") == 1;
  return has_own ? nullptr : EVP_sha256();
}

TimePtr asn1_time(std::chrono::system_clock::time_point at) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(at);
  return made<TimePtr>(ASN1_TIME_set(nullptr, seconds), "write a time; years go to 9999");
}

// 128 random bits: nobody guesses the next certificate, and no two are equal.
IntegerPtr random_serial() {
  std::array<unsigned char, 16> bytes{};
  require_openssl(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1,
                  "draw random bytes");
  const auto number = made<NumberPtr>(
      BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr), "make a number");
  return made<IntegerPtr>(BN_to_ASN1_INTEGER(number.get(), nullptr), "make a serial number");
}

/// An extension by the text that OpenSSL's configuration files have: of our own constants only.
ExtensionPtr extension(X509* issuer, X509* subject, int kind, const char* text) {
  X509V3_CTX context{};
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, subject, nullptr, nullptr, 0);
  return made<ExtensionPtr>(X509V3_EXT_conf_nid(nullptr, &context, kind, text),
                            "make an extension");
}
void add_extension(X509& certificate, X509& issuer, int kind, const char* text) {
  const ExtensionPtr made_of = extension(&issuer, &certificate, kind, text);
  require_openssl(X509_add_ext(&certificate, made_of.get(), -1) == 1, "add an extension");
}

void add_names(X509& certificate, const Names& names) {
  const bool is_uri = !names.uri.empty();
  const std::string& text = is_uri ? names.uri : names.dns;
  if (text.empty()) return;
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw InvalidArgument("a certificate's name has 2 GiB or more");
  const auto list = made<NamesPtr>(GENERAL_NAMES_new(), "make a list of names");
  using NamePtr = std::unique_ptr<GENERAL_NAME, FreeBy<&GENERAL_NAME_free>>;
  auto name = made<NamePtr>(GENERAL_NAME_new(), "make a name");
  ASN1_IA5STRING* const value = ASN1_IA5STRING_new();
  require_openssl(value != nullptr, "make a name");
  GENERAL_NAME_set0_value(name.get(), is_uri ? GEN_URI : GEN_DNS, value);  // which owns it now
  require_openssl(ASN1_STRING_set(value, text.data(), static_cast<int>(text.size())) == 1,
                  "make a name");
  require_openssl(sk_GENERAL_NAME_push(list.get(), name.get()) > 0, "make a list of names");
  (void)name.release();    // the list owns it
  const int critical = 1;  // since the subject is empty (RFC 5280, 4.2.1.6)
  require_openssl(X509_add1_ext_i2d(&certificate, NID_subject_alt_name, list.get(), critical,
                                    X509V3_ADD_DEFAULT) == 1,
                  "add a name");
}

/// A certificate of `key`, without issuer, extensions and signature.
CertificatePtr begin_certificate(EVP_PKEY& key, const Validity& validity) {
  auto certificate = made<CertificatePtr>(X509_new(), "make a certificate");
  const bool done = X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
                    X509_set_serialNumber(certificate.get(), random_serial().get()) == 1 &&
                    X509_set1_notBefore(certificate.get(), asn1_time(validity.from).get()) == 1 &&
                    X509_set1_notAfter(certificate.get(), asn1_time(validity.until).get()) == 1 &&
                    X509_set_pubkey(certificate.get(), &key) == 1;
  require_openssl(done, "make a certificate");
  return certificate;
}

// ---- revocation lists

/// The list that `pem` has; null if that is empty.
CrlPtr read_previous(const std::string& pem, const Authority& authority) {
  if (pem.empty()) return nullptr;
  CrlPtr list(PEM_read_bio_X509_CRL(reader_of(pem).get(), nullptr, no_password, nullptr));
  if (!list)
    refuse_input("the list of revoked certificates cannot be read; it must be a CRL as PEM");
  if (X509_CRL_verify(list.get(), authority.key.get()) != 1)
    refuse_input("the list of revoked certificates is not by this authority");
  return list;
}

/// The number of the next list: larger than that of the previous one, and unless clocks go back,
/// also than those of lists that were lost.
IntegerPtr next_number(const X509_CRL* previous, const Validity& validity) {
  const auto since_epoch =
      std::chrono::duration_cast<std::chrono::microseconds>(validity.from.time_since_epoch());
  auto next = made<NumberPtr>(BN_new(), "make a number");
  bool done =
      BN_set_word(next.get(),
                  static_cast<BN_ULONG>(std::max<std::int64_t>(since_epoch.count(), 1))) == 1;
  if (previous != nullptr) {
    const IntegerPtr last(static_cast<ASN1_INTEGER*>(
        X509_CRL_get_ext_d2i(previous, NID_crl_number, nullptr, nullptr)));
    if (last) {
      auto after = made<NumberPtr>(ASN1_INTEGER_to_BN(last.get(), nullptr), "read a number");
      done = done && BN_add_word(after.get(), 1) == 1;
      if (BN_cmp(after.get(), next.get()) > 0) next = std::move(after);
    }
  }
  require_openssl(done, "make a number");
  return made<IntegerPtr>(BN_to_ASN1_INTEGER(next.get(), nullptr), "make a number");
}

void add_previous(X509_CRL& list, X509_CRL& previous) {
  STACK_OF(X509_REVOKED)* const entries = X509_CRL_get_REVOKED(&previous);
  for (int i = 0; i < sk_X509_REVOKED_num(entries); ++i) {
    auto copy = made<RevokedPtr>(X509_REVOKED_dup(sk_X509_REVOKED_value(entries, i)),
                                 "copy an entry of the list");
    require_openssl(X509_CRL_add0_revoked(&list, copy.get()) == 1, "add an entry to the list");
    (void)copy.release();  // the list owns it
  }
}

void add_revoked(X509_CRL& list, X509& certificate, const Authority& authority,
                 const ASN1_TIME& at) {
  if (X509_cmp(&certificate, authority.certificate.get()) == 0)
    throw InvalidArgument("an authority cannot revoke its own certificate; make another authority");
  if (X509_verify(&certificate, authority.key.get()) != 1)
    refuse_input("a certificate to revoke is not by this authority");
  X509_REVOKED* before = nullptr;
  if (X509_CRL_get0_by_cert(&list, &before, &certificate) != 0) return;  // it is in the list
  auto entry = made<RevokedPtr>(X509_REVOKED_new(), "make an entry of the list");
  const bool done =
      X509_REVOKED_set_serialNumber(
          entry.get(), const_cast<ASN1_INTEGER*>(X509_get0_serialNumber(&certificate))) == 1 &&
      X509_REVOKED_set_revocationDate(entry.get(), const_cast<ASN1_TIME*>(&at)) == 1 &&
      X509_CRL_add0_revoked(&list, entry.get()) == 1;
  require_openssl(done, "add an entry to the list");
  (void)entry.release();  // the list owns it
}

}  // namespace

KeyPair make_authority(const std::string& name, const Validity& validity) {
  const KeyPtr key = new_key();
  const CertificatePtr certificate = begin_certificate(*key, validity);
  X509& it = *certificate;
  X509_NAME* const subject = X509_get_subject_name(&it);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(name.data());
  if (name.empty() || name.size() > 64)
    throw std::runtime_error("an authority's name must have from 1 to 64 bytes");
  require_openssl(X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, bytes,
                                             static_cast<int>(name.size()), -1, 0) == 1,
                  "use the authority's name");
  require_openssl(X509_set_issuer_name(&it, subject) == 1, "make a certificate");
  add_extension(it, it, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(it, it, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(it, it, NID_subject_key_identifier, "hash");
  require_openssl(X509_sign(&it, key.get(), digest_for(*key)) > 0, "sign a certificate");
  return {.certificate = pem_of(it), .key = pem_of(*key)};
}

KeyPair make_certificate(const KeyPair& authority, const Names& names, const Validity& validity) {
  const Authority signer = read_authority(authority);
  const KeyPtr key = new_key();
  const CertificatePtr certificate = begin_certificate(*key, validity);
  X509& it = *certificate;
  X509& issuer = *signer.certificate;
  require_openssl(X509_set_issuer_name(&it, X509_get_subject_name(&issuer)) == 1,
                  "make a certificate");
  add_extension(it, issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(it, issuer, NID_key_usage, "critical,digitalSignature");
  add_extension(it, issuer, NID_ext_key_usage, "serverAuth,clientAuth");
  add_extension(it, issuer, NID_subject_key_identifier, "hash");
  add_extension(it, issuer, NID_authority_key_identifier, "keyid,issuer");
  add_names(it, names);
  require_openssl(X509_sign(&it, signer.key.get(), digest_for(*signer.key)) > 0,
                  "sign a certificate");
  return {.certificate = pem_of(it), .key = pem_of(*key)};
}

std::string make_revocations(const KeyPair& authority, const std::string& revoked,
                             const Validity& validity, const std::string& previous) {
  const Authority signer = read_authority(authority);
  const CrlPtr before = read_previous(previous, signer);
  const auto list = made<CrlPtr>(X509_CRL_new(), "make a list");
  const TimePtr from = asn1_time(validity.from);
  const bool begun =
      X509_CRL_set_version(list.get(), X509_CRL_VERSION_2) == 1 &&
      X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(signer.certificate.get())) == 1 &&
      X509_CRL_set1_lastUpdate(list.get(), from.get()) == 1 &&
      X509_CRL_set1_nextUpdate(list.get(), asn1_time(validity.until).get()) == 1 &&
      X509_CRL_add1_ext_i2d(list.get(), NID_crl_number, next_number(before.get(), validity).get(),
                            0, X509V3_ADD_DEFAULT) == 1;
  require_openssl(begun, "make a list");
  const ExtensionPtr by =
      extension(signer.certificate.get(), nullptr, NID_authority_key_identifier, "keyid,issuer");
  require_openssl(X509_CRL_add_ext(list.get(), by.get(), -1) == 1, "make a list");
  if (before) add_previous(*list, *before);
  const BioPtr pem = reader_of(revoked);
  std::size_t count = 0;
  for (CertificatePtr it; (it = next_certificate(*pem)) != nullptr; ++count)
    add_revoked(*list, *it, signer, *from);
  if (count == 0 && !revoked.empty())
    throw InvalidArgument("there is no certificate to revoke in this text; it must be PEM");
  require_openssl(X509_CRL_sort(list.get()) == 1 &&
                      X509_CRL_sign(list.get(), signer.key.get(), digest_for(*signer.key)) > 0,
                  "sign a list");
  return pem_by([&](BIO* bio) { return PEM_write_bio_X509_CRL(bio, list.get()); },
                "write a list of revoked certificates");
}

CertificateFacts facts_of(const std::string& certificate) {
  const CertificatePtr read(
      PEM_read_bio_X509(reader_of(certificate).get(), nullptr, no_password, nullptr));
  if (!read) {
    (void)take_openssl_error();
    throw InvalidArgument("there is no certificate in this text; it must be PEM");
  }
  const ASN1_INTEGER* const serial = X509_get0_serialNumber(read.get());
  const std::span digits(ASN1_STRING_get0_data(serial),
                         static_cast<std::size_t>(ASN1_STRING_length(serial)));
  return {.identity = name_of(*read).proof.identity,
          .serial = hex(std::span<const std::uint8_t>(digits))};
}

std::string make_token() {
  RandomBits random;
  std::string token;
  for (int i = 0; i < 4; ++i)
    token += hex(random());
  return token + '\n';
}

}  // namespace batchrpc::tls
