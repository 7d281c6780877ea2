#include "tls/make_certificate.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>

#include "batchrpc/base/error.hpp"
#include "tls/certificate_name.hpp"
#include "tls/openssl_pointers.hpp"

namespace batchrpc::tls {
namespace make_certificate_test {

using namespace std::chrono_literals;

constexpr const char* kUri = "spiffe://batchrpc/job/run1/node/worker1";
const std::chrono::system_clock::time_point kNow{std::chrono::hours(24 * 365 * 55)};
const Validity kValidity{.from = kNow - 24h, .until = kNow + 24h};

BioPtr reader(const std::string& pem) {
  return BioPtr(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}
CertificatePtr read_certificate(const std::string& pem) {
  return CertificatePtr(PEM_read_bio_X509(reader(pem).get(), nullptr, nullptr, nullptr));
}
KeyPtr read_key(const std::string& pem) {
  return KeyPtr(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, nullptr, nullptr));
}
CrlPtr read_list(const std::string& pem) {
  return CrlPtr(PEM_read_bio_X509_CRL(reader(pem).get(), nullptr, nullptr, nullptr));
}

/// What OpenSSL says of the certificate: X509_V_OK or an error.
int verdict(const KeyPair& authority, const KeyPair& pair, int purpose = X509_PURPOSE_SSL_SERVER,
            std::chrono::system_clock::time_point at = kNow, const std::string& list = {}) {
  const StorePtr store(X509_STORE_new());
  const CertificatePtr root = read_certificate(authority.certificate);
  REQUIRE(X509_STORE_add_cert(store.get(), root.get()) == 1);
  unsigned long flags = X509_V_FLAG_X509_STRICT;  // NOLINT(google-runtime-int)
  if (!list.empty()) {
    REQUIRE(X509_STORE_add_crl(store.get(), read_list(list).get()) == 1);
    flags |= X509_V_FLAG_CRL_CHECK;
  }
  X509_VERIFY_PARAM* const parameters = X509_STORE_get0_param(store.get());
  X509_VERIFY_PARAM_set_flags(parameters, flags);
  X509_VERIFY_PARAM_set_purpose(parameters, purpose);
  X509_VERIFY_PARAM_set_time(parameters, std::chrono::system_clock::to_time_t(at));
  using VerifierPtr = std::unique_ptr<X509_STORE_CTX, FreeBy<&X509_STORE_CTX_free>>;
  const VerifierPtr verifier(X509_STORE_CTX_new());
  const CertificatePtr certificate = read_certificate(pair.certificate);
  REQUIRE(certificate);
  REQUIRE(X509_STORE_CTX_init(verifier.get(), store.get(), certificate.get(), nullptr) == 1);
  (void)X509_verify_cert(verifier.get());
  return X509_STORE_CTX_get_error(verifier.get());
}

const KeyPair& authority() {
  static const KeyPair pair = make_authority("test authority", kValidity);
  return pair;
}
KeyPair node_pair(const std::string& uri = kUri) {
  return make_certificate(authority(), {.uri = uri, .dns = {}}, kValidity);
}
int verdict_by_list(const KeyPair& pair, const std::string& list) {
  return verdict(authority(), pair, X509_PURPOSE_SSL_CLIENT, kNow, list);
}

TEST_CASE("a node's certificate is good for servers and clients, by the authority that signed it") {
  const KeyPair pair = node_pair();
  CHECK(verdict(authority(), pair, X509_PURPOSE_SSL_SERVER) == X509_V_OK);
  CHECK(verdict(authority(), pair, X509_PURPOSE_SSL_CLIENT) == X509_V_OK);
  CHECK(verdict(make_authority("test authority", kValidity), pair) != X509_V_OK);
  CHECK(X509_check_private_key(read_certificate(pair.certificate).get(),
                               read_key(pair.key).get()) == 1);
  CHECK(EVP_PKEY_get_bits(read_key(pair.key).get()) == 256);
}

TEST_CASE("certificates are valid from and until the given times") {
  const KeyPair pair = node_pair();
  const auto at = [&](std::chrono::system_clock::time_point time) {
    return verdict(authority(), pair, X509_PURPOSE_SSL_SERVER, time);
  };
  CHECK(at(kValidity.from) == X509_V_OK);
  CHECK(at(kValidity.until - 1s) == X509_V_OK);
  CHECK(at(kValidity.from - 1s) == X509_V_ERR_CERT_NOT_YET_VALID);
  CHECK(at(kValidity.until) == X509_V_ERR_CERT_HAS_EXPIRED);
}

TEST_CASE("a certificate has the name that it was made for") {
  CHECK(name_of(*read_certificate(node_pair().certificate)).proof.identity == kUri);
  const KeyPair dns = make_certificate(authority(), {.uri = {}, .dns = "w.a.org"}, kValidity);
  CHECK(name_of(*read_certificate(dns.certificate)).proof.identity == "dns:w.a.org");
  const KeyPair both = make_certificate(authority(), {.uri = kUri, .dns = "a.org"}, kValidity);
  CHECK(name_of(*read_certificate(both.certificate)).proof.identity == kUri);
  const KeyPair none = make_certificate(authority(), {}, kValidity);
  CHECK_THROWS_AS(name_of(*read_certificate(none.certificate)), PermissionDenied);
  CHECK(verdict(authority(), dns) == X509_V_OK);
}

TEST_CASE("a name is taken as it is, not as a command of OpenSSL's configuration") {
  const std::string name = "a,DNS:evil.org";
  const KeyPair pair = make_certificate(authority(), {.uri = {}, .dns = name}, kValidity);
  CHECK_THROWS_WITH(name_of(*read_certificate(pair.certificate)),
                    Catch::Contains("'a,DNS:evil.org' has other characters"));
}

TEST_CASE("certificates say what they may be used for") {
  const auto critical = [](const X509& certificate, int kind) {  // -1: it is not there
    const int at = X509_get_ext_by_NID(&certificate, kind, -1);
    return at < 0 ? -1 : X509_EXTENSION_get_critical(X509_get_ext(&certificate, at));
  };
  const CertificatePtr node = read_certificate(node_pair().certificate);
  CHECK(critical(*node, NID_subject_alt_name) == 1);
  CHECK(critical(*node, NID_key_usage) == 1);
  CHECK(critical(*node, NID_ext_key_usage) == 0);
  CHECK(critical(*node, NID_subject_key_identifier) == 0);
  CHECK(critical(*node, NID_authority_key_identifier) == 0);
  CHECK(X509_get_key_usage(node.get()) == KU_DIGITAL_SIGNATURE);
  CHECK(X509_get_extended_key_usage(node.get()) == (XKU_SSL_SERVER | XKU_SSL_CLIENT));
  CHECK(X509_check_ca(node.get()) == 0);
  const CertificatePtr root = read_certificate(authority().certificate);
  CHECK(X509_check_ca(root.get()) == 1);
  CHECK(critical(*root, NID_basic_constraints) == 1);
  CHECK(X509_get_key_usage(root.get()) == (KU_KEY_CERT_SIGN | KU_CRL_SIGN));
}

TEST_CASE("a node's certificate signs no others") {
  const KeyPair node = node_pair();
  CHECK(verdict(node, make_certificate(node, {.uri = kUri, .dns = {}}, kValidity)) != X509_V_OK);
}

TEST_CASE("serial numbers are random") {
  std::set<std::string> serials;
  for (int i = 0; i < 20; ++i) {
    const CertificatePtr certificate = read_certificate(node_pair().certificate);
    const NumberPtr number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate.get()), nullptr));
    CHECK(BN_is_negative(number.get()) == 0);
    CHECK(BN_num_bits(number.get()) <= 128);
    CHECK(BN_num_bits(number.get()) > 64);
    char* const text = BN_bn2hex(number.get());
    serials.insert(text);
    OPENSSL_free(text);
  }
  CHECK(serials.size() == 20);
}

TEST_CASE("an authority revokes certificates, and others remain good") {
  const KeyPair revoked = node_pair();
  const KeyPair other = node_pair();
  const std::string list = make_revocations(authority(), revoked.certificate, kValidity);
  CHECK(X509_CRL_verify(read_list(list).get(), read_key(authority().key).get()) == 1);
  CHECK(verdict_by_list(revoked, list) == X509_V_ERR_CERT_REVOKED);
  CHECK(verdict_by_list(other, list) == X509_V_OK);
  CHECK(verdict_by_list(revoked, make_revocations(authority(), "", kValidity)) == X509_V_OK);
}

TEST_CASE("a new list keeps what was revoked before, has each once, and a larger number") {
  const KeyPair first = node_pair();
  const KeyPair second = node_pair();
  const KeyPair third = node_pair();
  const auto number_of = [](const std::string& list) {
    const IntegerPtr number(static_cast<ASN1_INTEGER*>(
        X509_CRL_get_ext_d2i(read_list(list).get(), NID_crl_number, nullptr, nullptr)));
    REQUIRE(number);
    std::int64_t value = 0;
    REQUIRE(ASN1_INTEGER_get_int64(&value, number.get()) == 1);
    return value;
  };
  const std::string before = make_revocations(authority(), first.certificate, kValidity);
  const std::string now = make_revocations(
      authority(), second.certificate + first.certificate + second.certificate, kValidity, before);
  CHECK(sk_X509_REVOKED_num(X509_CRL_get_REVOKED(read_list(now).get())) == 2);
  CHECK(verdict_by_list(first, now) == X509_V_ERR_CERT_REVOKED);
  CHECK(verdict_by_list(second, now) == X509_V_ERR_CERT_REVOKED);
  CHECK(verdict_by_list(third, now) == X509_V_OK);
  CHECK(number_of(now) == number_of(before) + 1);
}

TEST_CASE("only what the authority has signed can be revoked by it") {
  const KeyPair stranger = make_authority("stranger", kValidity);
  const KeyPair theirs = make_certificate(stranger, {.uri = kUri, .dns = {}}, kValidity);
  const auto revoke = [](const std::string& revoked, const std::string& previous = {}) {
    return make_revocations(authority(), revoked, kValidity, previous);
  };
  CHECK_THROWS_AS(revoke(theirs.certificate), InvalidArgument);
  CHECK_THROWS_WITH(revoke(authority().certificate), Catch::Contains("its own certificate"));
  CHECK_THROWS_WITH(revoke("no certificate"), Catch::Contains("there is no certificate"));
  const std::string good = node_pair().certificate;
  CHECK_THROWS_AS(revoke(good + good.substr(0, good.size() / 2)), InvalidArgument);
  CHECK_THROWS_AS(revoke("", "no list"), InvalidArgument);
  CHECK_THROWS_WITH(revoke("", make_revocations(stranger, "", kValidity)),
                    Catch::Contains("is not by this authority"));
  CHECK(ERR_peek_error() == 0);
}

TEST_CASE("an authority that cannot be read is refused, without a question for a password") {
  const auto sign_with = [](const KeyPair& pair) {
    return make_certificate(pair, {.uri = kUri, .dns = {}}, kValidity);
  };
  const KeyPair good = authority();
  CHECK_THROWS_AS(sign_with({}), InvalidArgument);
  CHECK_THROWS_AS(sign_with({.certificate = "no PEM", .key = good.key}), InvalidArgument);
  CHECK_THROWS_AS(sign_with({.certificate = good.key, .key = good.key}), InvalidArgument);
  CHECK_THROWS_AS(sign_with({.certificate = good.certificate, .key = "no PEM"}), InvalidArgument);
  CHECK_THROWS_WITH(sign_with({.certificate = good.certificate, .key = node_pair().key}),
                    Catch::Contains("belongs to another certificate"));
  const BioPtr bio(BIO_new(BIO_s_mem()));
  const unsigned char password[] = "secret";
  REQUIRE(PEM_write_bio_PKCS8PrivateKey(bio.get(), read_key(good.key).get(), EVP_aes_128_cbc(),
                                        reinterpret_cast<const char*>(password), 6, nullptr,
                                        nullptr) == 1);
  char* text = nullptr;
  const auto size = static_cast<std::size_t>(BIO_get_mem_data(bio.get(), &text));
  CHECK_THROWS_WITH(sign_with({.certificate = good.certificate, .key = {text, size}}),
                    Catch::Contains("not encrypted"));
  CHECK(ERR_peek_error() == 0);
}

TEST_CASE("names that an authority cannot have are an error") {
  CHECK_THROWS_AS(make_authority("", kValidity), std::runtime_error);
  CHECK_THROWS_AS(make_authority(std::string(65, 'a'), kValidity), std::runtime_error);
  CHECK_NOTHROW(make_authority(std::string(64, 'a'), kValidity));
}

TEST_CASE("a token is 64 hexadecimal digits and a line end, other ones each time") {
  const std::string token = make_token();
  CHECK(token.size() == 65);
  CHECK(token.find_first_not_of("0123456789abcdef") == 64);
  CHECK(token.back() == '\n');
  CHECK(token != make_token());
}

}  // namespace make_certificate_test
}  // namespace batchrpc::tls
