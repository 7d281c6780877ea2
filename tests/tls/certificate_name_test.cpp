#include "tls/certificate_name.hpp"

#include <openssl/err.h>

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "tls/named_certificate.hpp"

namespace batchrpc::tls {
namespace certificate_name_test {

using namespace std::string_literals;
using test::named_certificate;

constexpr const char* kUri = "spiffe://example.org/job/run1/node/worker1";

template <class Parse>
std::string refusal(const Parse& parse) {
  try {
    (void)parse();
  } catch (const PermissionDenied& error) {
    return error.what();
  }
  return "it is not refused";
}
std::string uri_refusal(std::string_view uri) {
  return refusal([&] { return parse_uri_name(uri); });
}
std::string dns_refusal(std::string_view dns) {
  return refusal([&] { return parse_dns_name(dns); });
}
bool uri_covers(std::string_view uri, std::string_view name, std::string_view job) {
  return parse_uri_name(uri).proof.covers(name, job);
}
bool dns_covers(std::string_view dns, std::string_view name) {
  return parse_dns_name(dns).proof.covers(name, "any job");
}

TEST_CASE("a URI names the domain, the job and the node") {
  const CertificateName name = parse_uri_name(kUri);
  CHECK(name.domain == "example.org");
  CHECK(name.proof.identity == kUri);
  CHECK(name.proof.job == "run1");
  CHECK(name.proof.name == "worker1");
}

TEST_CASE("jobs and names of nodes are percent-decoded, and case matters") {
  const CertificateName name =
      parse_uri_name("spiffe://a/job/a%2fb%20%25/node/W%C3%B6rker~1!$&'()+,;=:@");
  CHECK(name.proof.job == "a/b %");
  CHECK(name.proof.name == "W\xC3\xB6rker~1!$&'()+,;=:@");
  CHECK(uri_covers("spiffe://a/job/a%2fb/node/Worker", "Worker", "a/b"));
  CHECK_FALSE(uri_covers("spiffe://a/job/a%2fb/node/Worker", "worker", "a/b"));
}

TEST_CASE("a job and a node's name may be patterns") {
  constexpr std::string_view kPattern = "spiffe://batchrpc/job/run*/node/worker*.a";
  CHECK(uri_covers(kPattern, "worker1.a", "run1"));
  CHECK(uri_covers(kPattern, "worker.b.a", "run"));
  CHECK_FALSE(uri_covers(kPattern, "worker1.b", "run1"));
  CHECK_FALSE(uri_covers(kPattern, "worker1.a", "walk1"));
  CHECK(uri_covers("spiffe://batchrpc/job/*/node/*", "any", ""));
  CHECK_FALSE(uri_covers(kUri, "worker11", "run1"));
  CHECK_FALSE(uri_covers(kUri, "worker1", ""));
}

TEST_CASE("a URI that is not exactly that of a node is refused, and the message says why") {
  const std::string start = "spiffe://example.org/job/run1/node/";
  struct Case {
    std::string uri;
    const char* why;
  };
  const std::vector<Case> cases{
      {"", "is empty"},
      {kUri + "\0.evil.org"s, "contains a NUL byte"},
      {start + "a\nb", "is not UTF-8 without control characters"},
      {start + "a\xff", "is not UTF-8"},
      {"https://example.org/job/run1/node/worker1", "has another scheme"},
      {"SPIFFE://example.org/job/run1/node/worker1", "has another scheme"},
      {"spiffe:/example.org/job/run1/node/worker1", "has another scheme"},
      {" "s + kUri, "has another scheme"},
      {kUri + "?x=1"s, "has a query"},
      {kUri + "#x"s, "has a fragment"},
      {"spiffe://example.org?/job/run1/node/worker1", "has a query"},
      {"spiffe:///job/run1/node/worker1", "has no domain"},
      {"spiffe://root@example.org/job/run1/node/worker1", "has a user"},
      {"spiffe://example.org:443/job/run1/node/worker1", "has a port"},
      {"spiffe://Example.org/job/run1/node/worker1", "has a domain with other characters"},
      {"spiffe://ex%61mple.org/job/run1/node/worker1", "has a domain with other characters"},
      {"spiffe://*/job/run1/node/worker1", "has a domain with other characters"},
      {"spiffe://example..org/job/run1/node/worker1", "has a domain with an empty label"},
      {"spiffe://./job/run1/node/worker1", "has a domain with an empty label"},
      {"spiffe://example.org", "has no path"},
      {"spiffe://example.org/", "has an empty segment"},
      {"spiffe://example.org//job/run1/node/worker1", "has an empty segment"},
      {"spiffe://example.org/job//node/worker1", "has an empty segment"},
      {start, "has an empty segment"},
      {kUri + "/"s, "has an empty segment"},
      {"spiffe://example.org/job/../node/worker1", "has a segment '.' or '..'"},
      {start + ".", "has a segment '.' or '..'"},
      {start + "%2E%2e", "has the node's name '..'"},
      {"spiffe://example.org/job/%2e/node/worker1", "has the job '.'"},
      {"spiffe://example.org/node/worker1/job/run1", "has another path"},
      {"spiffe://example.org/node/worker1", "has another path"},
      {"spiffe://example.org/j%6fb/run1/node/worker1", "has another path"},
      {"spiffe://example.org/Job/run1/node/worker1", "has another path"},
      {kUri + "/more"s, "has another path"},
      {kUri + "/more/and/more"s, "has another path"},
      {start + "%", "has a '%' without two hexadecimal digits in its node's name"},
      {start + "a%2", "has a '%' without two hexadecimal digits"},
      {start + "a%2g", "has a '%' without two hexadecimal digits"},
      {start + "%%41", "has a '%' without two hexadecimal digits"},
      {start + "a%00b", "has a node's name that contains a NUL byte"},
      {start + "a%0Ab", "has a node's name that is not UTF-8 without control characters"},
      {start + "a%ff", "has a node's name that is not UTF-8"},
      {start + "worker%2A", "encodes a '*' or '?' in its node's name"},
      {"spiffe://example.org/job/%3f/node/worker1", "encodes a '*' or '?' in its job"},
      {start + "a b", "has a character in its node's name that must be percent-encoded"},
      {start + "a\\b", "has a character in its node's name that must be percent-encoded"},
      {start + "\xC3\xB6", "has a character in its node's name that must be percent-encoded"}};
  for (const Case& one : cases) {
    CHECK_THAT(uri_refusal(one.uri),
               Catch::Contains(one.why) &&
                   Catch::EndsWith("; expected spiffe://DOMAIN/job/JOB/node/NAME"));
  }
}

TEST_CASE("the parts of a URI have at most 255 bytes each, decoded") {
  const std::string most(255, 'a');
  std::string encoded;
  for (int i = 0; i < 255; ++i)
    encoded += "%61";
  const CertificateName name =
      parse_uri_name("spiffe://" + most + "/job/" + encoded + "/node/" + encoded);
  CHECK(name.domain == most);
  CHECK(name.proof.job == most);
  CHECK(name.proof.name == most);
  CHECK_THAT(uri_refusal("spiffe://" + most + "a/job/a/node/a"),
             Catch::Contains("has a domain of more than 255 bytes"));
  CHECK_THAT(uri_refusal("spiffe://a/job/" + most + "a/node/a"),
             Catch::Contains("has a job that has more than 255 bytes"));
  CHECK_THAT(uri_refusal("spiffe://a/job/a/node/" + encoded + "a"),
             Catch::Contains("has a node's name that has more than 255 bytes"));
  CHECK_THAT(uri_refusal("spiffe://a/job/a/node/" + std::string(1'000'000, 'a')),
             Catch::Contains("has more than 2048 bytes"));
}

TEST_CASE("a DNS name is a node's name in lower case, of any job") {
  const CertificateName name = parse_dns_name("Worker_1.Example.org");
  CHECK(name.domain.empty());
  CHECK(name.proof.identity == "dns:worker_1.example.org");
  CHECK(name.proof.job == "*");
  CHECK(dns_covers("Worker_1.Example.org", "worker_1.example.org"));
  CHECK_FALSE(dns_covers("worker_1.example.org", "worker_2.example.org"));
  CHECK_FALSE(dns_covers("worker_1.example.org", "worker_1.example.org."));
  CHECK_FALSE(dns_covers("localhost", "LocalHost"));
}

TEST_CASE("a DNS name has no wildcard") {
  CHECK_THROWS_AS(parse_dns_name("*.example.org"), PermissionDenied);
}

TEST_CASE("what is no DNS name is refused, and the message says why") {
  struct Case {
    std::string dns;
    const char* why;
  };
  const std::vector<Case> cases{{"", "is empty"},
                                {"worker1.example.org\0.evil.org"s, "contains a NUL byte"},
                                {"worker1\n", "is not UTF-8 without control characters"},
                                {"w\xff", "is not UTF-8"},
                                {"w\xC3\xB6rker", "has other characters"},
                                {"worker 1", "has other characters"},
                                {"worker?", "has other characters"},
                                {"a/b", "has other characters"},
                                {".example.org", "has an empty label"},
                                {"example.org.", "has an empty label"},
                                {"a..b", "has an empty label"},
                                {"*", "has a wildcard"},
                                {"w*.example.org", "has a wildcard"},
                                {"a.*.example.org", "has a wildcard"},
                                {"*.*.org", "has a wildcard"},
                                {"**.org", "has a wildcard"},
                                {"-a.org", "has a label that begins or ends with '-'"},
                                {"a-.org", "has a label that begins or ends with '-'"},
                                {std::string(64, 'a'), "has a label of more than 63 bytes"},
                                {std::string(254, 'a'), "has more than 253 bytes"}};
  for (const Case& one : cases)
    CHECK_THAT(dns_refusal(one.dns), Catch::Contains(one.why) && Catch::Contains("; expected"));
  CHECK_NOTHROW(parse_dns_name(std::string(63, 'a')));
}

TEST_CASE("messages about names are plain text, of limited length") {
  CHECK_THAT(uri_refusal("spiffe://a/\x1b[2J\n"), Catch::Contains("'spiffe://a/\\x1b[2J\\n'"));
  CHECK(uri_refusal(std::string(1'000'000, '\n')).size() < 500);
  CHECK(dns_refusal(std::string(1'000'000, '\n')).size() < 500);
}

TEST_CASE("a certificate has the name of its only URI or DNS name") {
  CHECK(name_of(*named_certificate({{GEN_URI, kUri}})).proof.identity == kUri);
  CHECK(name_of(*named_certificate({{GEN_DNS, "Worker1"}})).proof.identity == "dns:worker1");
  const auto with_others = named_certificate(
      {{GEN_EMAIL, "me@example.org"}, {GEN_URI, kUri}, {GEN_IPADD, "\x7f\0\0\1"s}});
  CHECK(name_of(*with_others).proof.name == "worker1");
}

TEST_CASE("a certificate with another number of names is refused") {
  const auto refusal_of = [](const std::vector<test::AlternativeName>& names) {
    return refusal([&] { return name_of(*named_certificate(names)); });
  };
  CHECK_THAT(refusal_of({}), Catch::Contains("has no subject alternative name"));
  CHECK_THAT(refusal_of({{GEN_EMAIL, "me@example.org"}}),
             Catch::Contains("has neither a URI nor a DNS name; expected one"));
  const char* const kTwo = "has two names or more";
  CHECK_THAT(refusal_of({{GEN_URI, kUri}, {GEN_URI, kUri}}), Catch::Contains(kTwo));
  CHECK_THAT(refusal_of({{GEN_DNS, "a"}, {GEN_DNS, "b"}}), Catch::Contains(kTwo));
  CHECK_THAT(refusal_of({{GEN_DNS, "a"}, {GEN_URI, kUri}}), Catch::Contains(kTwo));
  CHECK_THAT(refusal_of({{GEN_URI, "https://a"}, {GEN_URI, kUri}}), Catch::Contains(kTwo));
}

TEST_CASE("bytes that a certificate hides in its name are seen") {
  const auto refusal_of = [](int type, const std::string& value) {
    return refusal([&] { return name_of(*named_certificate({{type, value}})); });
  };
  CHECK_THAT(refusal_of(GEN_URI, kUri + "\0x"s), Catch::Contains("contains a NUL byte"));
  CHECK_THAT(refusal_of(GEN_DNS, "worker1\0.evil.org"s), Catch::Contains("contains a NUL byte"));
  CHECK_THAT(refusal_of(GEN_DNS, ""), Catch::Contains("is empty"));
}

TEST_CASE("names that cannot be read are refused, and leave no error behind") {
  const auto certificate = named_certificate({});
  const std::string value = "no list of names";
  const auto add = [&] {
    ASN1_OCTET_STRING* const octets = ASN1_OCTET_STRING_new();
    test::require(ASN1_STRING_set(octets, value.data(), static_cast<int>(value.size())) == 1);
    const ExtensionPtr extension(
        X509_EXTENSION_create_by_NID(nullptr, NID_subject_alt_name, 1, octets));
    ASN1_OCTET_STRING_free(octets);
    test::require(X509_add_ext(certificate.get(), extension.get(), -1) == 1);
  };
  add();
  CHECK_THAT(refusal([&] { return name_of(*certificate); }),
             Catch::Contains("has subject alternative names that cannot be read"));
  add();
  CHECK_THAT(refusal([&] { return name_of(*certificate); }),
             Catch::Contains("has two extensions with subject alternative names"));
  CHECK(ERR_peek_error() == 0);
}

}  // namespace certificate_name_test
}  // namespace batchrpc::tls
