#pragma once

#include <openssl/ssl.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "batchrpc/transport/security.hpp"
#include "tls/openssl_pointers.hpp"
#include "tls/tls_error.hpp"

namespace batchrpc::tls {

/// The node whose streams are secured.
struct Owner {
  std::string name{};  ///< NodeOptions::name
  std::string job{};   ///< NodeOptions::job
};

/// What a handshake has proved.
struct ProvenPeer {
  std::shared_ptr<const PeerProof> proof{};
  /// The certificate and those of its intermediate authorities; null if there is none.
  std::shared_ptr<X509> certificate{};
  std::shared_ptr<STACK_OF(X509)> chain{};
};

/// A token or certificates, by which a node authenticates itself and its peers. Thread-safe.
class Credentials {
 public:
  virtual ~Credentials() = default;

  /// Returns what the next handshake uses.
  [[nodiscard]] virtual ContextPtr context() const = 0;

  /// Returns what the handshake of `ssl` has proved. Throws PermissionDenied if that is not enough.
  [[nodiscard]] virtual ProvenPeer prove(SSL& ssl) const = 0;

  /// Returns a better reason for a handshake that failed with `error`, if there is one.
  [[nodiscard]] virtual std::error_code explain(SSL& ssl, std::error_code error) const = 0;

  /// Loads what has changed. Returns a line for the log, if anything has: at the level info or, if
  /// it cannot be used and the one loaded before stays, warning.
  struct News {
    std::string line{};
    bool is_bad = false;
  };
  [[nodiscard]] virtual std::optional<News> look() { return std::nullopt; }

  /// As StreamSecurity::certificate_time_left().
  [[nodiscard]] virtual std::optional<std::chrono::seconds> time_left() const {
    return std::nullopt;
  }

  /// Returns why a peer that was proved is not trusted any longer; no error if it is. `anew`: also
  /// checks its certificate against what was loaded since.
  [[nodiscard]] virtual std::error_code check_again(const ProvenPeer& /*peer*/,
                                                    bool /*anew*/) const {
    return {};
  }
};

/// Returns credentials by a token. Throws InvalidArgument if it is too short; `source` names it.
[[nodiscard]] std::shared_ptr<Credentials> token_credentials(const std::string& token,
                                                             const std::string& source,
                                                             const Owner& owner);

/// Returns credentials by the certificates of the options. Throws InvalidArgument that names the
/// file and what is wrong with it, also if the certificate is not for `owner`.
[[nodiscard]] std::shared_ptr<Credentials> certificate_credentials(const SecurityOptions& options,
                                                                   const Owner& owner);

/// The name of the contexts that sessions belong to. Without it OpenSSL refuses the pre-shared key
/// of a peer from which it would demand a certificate otherwise.
inline constexpr std::array<unsigned char, 8> kSessionContext{'b', 'a', 't', 'c',
                                                              'h', 'r', 'p', 'c'};

/// Returns -1: there is no passphrase. Without this callback OpenSSL asks for one on the terminal.
int no_passphrase(char* buffer, int size, int writes, void* argument) noexcept;

/// Returns a context for TLS 1.3 without tickets, early data, compression and renegotiation, which
/// demands a valid certificate of the peer and trusts no authority yet.
[[nodiscard]] ContextPtr new_context();

}  // namespace batchrpc::tls
