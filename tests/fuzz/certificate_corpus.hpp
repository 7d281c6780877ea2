#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tls/named_certificate.hpp"

namespace batchrpc::fuzz {

/// An input of the fuzz target certificate_name, with the name of its file.
struct CertificateInput {
  std::string file;
  std::string bytes;
};

/// What fuzzing of the names of certificates starts from.
inline std::vector<CertificateInput> certificate_inputs() {
  using tls::test::AlternativeName;
  const std::string uri = "spiffe://example.org/job/run1/node/worker1";
  std::vector<CertificateInput> inputs{
      {"uri", "u" + uri},
      {"uri-pattern", "uspiffe://batchrpc/job/*/node/worker*"},
      {"uri-encoded", "uspiffe://a/job/a%2fb/node/W%C3%B6rker~1!$&'()+,;=:@"},
      {"uri-query", "u" + uri + "?a=b#c"},
      {"uri-user", "uspiffe://root@example.org:443/job/run1/node/worker1"},
      {"uri-dots", "uspiffe://example.org/job/../node/%2e%2E"},
      {"uri-other", "uhttps://example.org/"},
      {"dns", "dWorker1.example.org"},
      {"dns-pattern", "d*.example.org"},
      {"dns-other", "d*.*..example.org."}};
  const std::string zero(1, '\0');
  const std::vector<std::pair<const char*, std::vector<AlternativeName>>> certificates{
      {"certificate-uri", {{GEN_URI, uri}}},
      {"certificate-dns", {{GEN_DNS, "*.example.org"}}},
      {"certificate-none", {}},
      {"certificate-two", {{GEN_URI, uri}, {GEN_DNS, "worker1"}}},
      {"certificate-zero", {{GEN_DNS, "worker1" + zero + ".example.org"}}},
      {"certificate-others",
       {{GEN_EMAIL, "me@example.org"}, {GEN_IPADD, "\x7f\1\1\1"}, {GEN_URI, uri}}}};
  for (const auto& [file, names] : certificates)
    inputs.push_back({file, "c" + tls::test::bytes_of(*tls::test::named_certificate(names))});
  return inputs;
}

}  // namespace batchrpc::fuzz
