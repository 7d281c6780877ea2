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
/// - a URI `spiffe://DOMAIN/job/JOB/node/NAME` (a SPIFFE ID; JOB and NAME are percent-decoded). In
/// JOB
///   and in NAME, `*` stands for any characters; an encoded `*` or `?` is refused;
/// - a DNS name: the node's name, in lower case, of any job. It has no wildcard.
///
/// Each of DOMAIN, JOB and NAME has at most 255 bytes, the URI 2048, and a DNS name 253.
struct CertificateName {
  std::string domain{};  ///< the trust domain of a SPIFFE ID; empty for a DNS name
  /// The identity is the URI as it is, or "dns:NAME" in lower case.
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

}  // namespace batchrpc::tls
