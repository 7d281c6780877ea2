#pragma once

#include <openssl/x509.h>

#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"
#include "batchrpc/transport/stream.hpp"

namespace batchrpc::tls {

/// Who a certificate is for, by its subject alternative names (RFC 5280, 4.2.1.6). It has exactly
/// one of these, and no other URI or DNS name:
///
/// - a URI `spiffe://DOMAIN/job/JOB/node/NAME` (SPIFFE ID; JOB and NAME are percent-decoded). Each
/// of
///   JOB and NAME may be a pattern in which `*` stands for any characters. Neither may encode `*`
///   or
///   `?`: it would not be clear whether that stands for itself;
/// - a DNS name: the node's name in any case, of any job. `*.example.org` stands for names with one
///   more label.
///
/// Each of DOMAIN, JOB and NAME has at most 255 bytes, the URI 2048, and a DNS name 253.
struct CertificateName {
  std::string domain{};  ///< the trust domain of a SPIFFE ID; empty for a DNS name
  /// The identity is the URI as it is, or "dns:NAME" in lower case; and the patterns. Ask covers()
  /// what they match: a DNS name follows other rules.
  PeerProof proof{};
};

/// Returns the name of the certificate. Throws PermissionDenied that says what is wrong with its
/// names, and what it must have.
[[nodiscard]] CertificateName name_of(const X509& certificate);

/// Parses one name as name_of() does; throws the same. Any bytes may be in them.
/// @{
[[nodiscard]] BATCHRPC_EXPORT CertificateName parse_uri_name(std::string_view uri);
[[nodiscard]] BATCHRPC_EXPORT CertificateName parse_dns_name(std::string_view dns);
/// @}

/// Whether a node of this name and job may use the certificate. Of a DNS name, `*` stands for one
/// label, and case does not matter.
[[nodiscard]] bool covers(const PeerProof& proof, std::string_view name, std::string_view job);

}  // namespace batchrpc::tls
