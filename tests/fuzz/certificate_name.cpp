#include "tls/certificate_name.hpp"

#include <openssl/err.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/plain_text.hpp"
#include "batchrpc/base/error.hpp"
#include "fuzz/targets.hpp"
#include "tls/openssl_pointers.hpp"

// Names of certificates: the first byte says whether the rest is a URI ('u'), a DNS name ('d'), or
// a certificate as bytes (any other).

namespace batchrpc::fuzz {
namespace {

/// What holds for every name that is accepted.
void check_name(const tls::CertificateName& name) {
  const PeerProof& proof = name.proof;
  for (const std::string& text : {proof.identity, proof.job, proof.name})
    require(!text.empty() && is_plain_text(text), "a name that is empty or no plain text");
  require(proof.job.size() <= 255 && proof.name.size() <= 255, "a name that is too long");
  require(proof.name.find('?') == std::string::npos, "a name with '?'");
  const bool is_dns = proof.identity.starts_with("dns:");
  require(is_dns != proof.identity.starts_with("spiffe://"), "an identity of no kind");
  require(is_dns == name.domain.empty(), "a domain of a DNS name, or none of a URI");
  const bool is_pattern = proof.name.find('*') != std::string::npos;
  const bool is_any_job = proof.job.find('*') != std::string::npos;
  if (is_dns) {
    require(tls::parse_dns_name(proof.identity.substr(4)).proof.name == proof.name,
            "a DNS name that is another one when it is read again");
  }
  if (!is_pattern) {
    require(proof.covers(proof.name, proof.job), "a name that does not cover itself");
    require(!proof.covers(proof.name + "x", proof.job), "a name that covers others");
  }
  if (!is_any_job) require(!proof.covers(proof.name, proof.job + "x"), "a job that covers others");
}

tls::CertificateName parse(char kind, std::string_view text) {
  if (kind == 'u') return tls::parse_uri_name(text);
  if (kind == 'd') return tls::parse_dns_name(text);
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  const tls::CertificatePtr certificate(
      d2i_X509(nullptr, &bytes, static_cast<long>(text.size())));  // NOLINT(google-runtime-int)
  ERR_clear_error();
  if (!certificate) throw PermissionDenied("it is no certificate");
  return tls::name_of(*certificate);
}

}  // namespace

void certificate_name(Input input) {
  if (input.empty()) return;
  const std::string text(reinterpret_cast<const char*>(input.data()), input.size());
  try {
    check_name(parse(text.front(), std::string_view(text).substr(1)));
  } catch (const PermissionDenied& error) {
    require(is_plain_text(error.what()), "a message that is no plain text");
  }
  require(ERR_peek_error() == 0, "an error is left in OpenSSL's queue");
}

}  // namespace batchrpc::fuzz
