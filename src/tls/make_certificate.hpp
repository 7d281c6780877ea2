#pragma once

#include <chrono>
#include <string>

#include "batchrpc/base/export.hpp"

namespace batchrpc::tls {

/// A private key (ECDSA, P-256) and its certificate, as PEM.
struct KeyPair {
  std::string certificate{};
  std::string key{};
};

/// When a certificate is valid.
struct Validity {
  std::chrono::system_clock::time_point from{};
  std::chrono::system_clock::time_point until{};
};

/// Returns a new certificate authority (self-signed, CA:TRUE, keyCertSign and cRLSign). Throws
/// std::runtime_error if OpenSSL fails.
[[nodiscard]] BATCHRPC_EXPORT KeyPair make_authority(const std::string& name,
                                                     const Validity& validity);

/// Returns a node's certificate that `authority` has signed: for servers and clients, with this one
/// subject alternative name: `uri` or, if that is empty, `dns`; with neither it has none. Throws
/// InvalidArgument if the authority cannot be read, or std::runtime_error.
struct Names {
  std::string uri{};
  std::string dns{};
};
[[nodiscard]] BATCHRPC_EXPORT KeyPair make_certificate(const KeyPair& authority, const Names& names,
                                                       const Validity& validity);

/// What a certificate (PEM) says of itself.
struct CertificateFacts {
  std::string identity{};  ///< its URI, or "dns:NAME"
  std::string serial{};    ///< its serial number, in hexadecimal digits
};
/// Returns these facts. Throws InvalidArgument if it cannot be read, or PermissionDenied if it is
/// no certificate of a node.
[[nodiscard]] BATCHRPC_EXPORT CertificateFacts facts_of(const std::string& certificate);

/// Returns a list of revoked certificates (X.509 CRL, PEM) that `authority` has signed. `revoked`:
/// certificates as PEM, one behind the other; it may be empty. `previous`: a list of this
/// authority, whose entries the new one keeps; empty if there is none. Throws InvalidArgument if
/// one of the texts cannot be read, or is not by this authority, or std::runtime_error.
[[nodiscard]] BATCHRPC_EXPORT std::string make_revocations(const KeyPair& authority,
                                                           const std::string& revoked,
                                                           const Validity& validity,
                                                           const std::string& previous = {});

/// Returns a join token: 32 bytes of the system's random source, as 64 hexadecimal digits and a
/// line end. Throws std::system_error if there is no such source.
[[nodiscard]] BATCHRPC_EXPORT std::string make_token();

}  // namespace batchrpc::tls
