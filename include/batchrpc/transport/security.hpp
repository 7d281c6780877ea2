#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/function.hpp"
#include "batchrpc/transport/stream.hpp"

namespace batchrpc {

/// How TCP connections are authenticated and encrypted: by TLS 1.3, mutually (docs/security.md).
/// All nodes of a group use one of these ways. Unix sockets need none of them: the system tells the
/// user of the peer.
///
/// - *Certificates*: set `certificate`, `key` and `authority`.
/// - *A token*: a secret that all nodes of the group have. Set `token_file`, or the environment
///   variable BATCHRPC_TOKEN_FILE, or BATCHRPC_TOKEN (the token itself).
/// - *Neither*: a token of this user is made at first use, and serves all processes of the user on
///   this host. TCP then only works on loopback.
struct SecurityOptions {
  /// The path of a file with the token: at least 32 bytes of text, as
  /// `batchrpc-keys token` writes it. Nobody but its owner may have access to it.
  std::string token_file{};

  /// Paths of PEM files: the node's certificate, followed by those of intermediate authorities, if
  /// any; its private key; the certificates of the authorities that sign for the group. The files
  /// are loaded again when they change.
  /// @{
  std::string certificate{};
  std::string key{};
  std::string authority{};
  /// @}
  /// The path of a PEM file with the lists of revoked certificates (CRL) of all authorities; empty:
  /// none is checked. It is loaded again when it changes; connections of revoked nodes then end.
  std::string revocations{};

  /// The path of a file with the names of nodes that may not connect, by whichever transport: one
  /// on a line, in which `*` stands for any characters; `#` begins a comment. Empty: none. It is
  /// loaded again when it changes; sessions with these nodes then end.
  std::string denied{};

  /// TCP in plain text, to and from anybody. The node warns once.
  bool insecure = false;
};

/// Secures the streams of a transport: by a handshake on each new stream, before the node reads a
/// byte of it. The node passes one to its transports (TransportContext::security). Thread-safe. All
/// handlers are called on the loop.
class BATCHRPC_EXPORT StreamSecurity {
 public:
  virtual ~StreamSecurity();

  /// Returns why addresses of other hosts cannot be used, or those of this host, and what to do;
  /// empty if they can.
  [[nodiscard]] virtual std::string refusal(bool beyond_this_host) const = 0;

  /// Returns how long this node's certificate is still valid, negative once it has expired; empty
  /// if it has none.
  [[nodiscard]] virtual std::optional<std::chrono::seconds> certificate_time_left() const {
    return std::nullopt;
  }

  /// Gets the secured stream, or null and why there is none.
  using ConnectHandler =
      UniqueFunction<void(std::unique_ptr<Stream> stream, std::error_code error)>;
  /// Secures a stream that this node has made. Calls `handler` once: with std::errc::timed_out at
  /// `deadline`. If this object is destroyed before, the handler is destroyed without a call.
  virtual void connect(std::unique_ptr<Stream> stream, TimePoint deadline,
                       ConnectHandler handler) = 0;

  /// Gets each stream that is secured.
  using AcceptHandler = std::function<void(std::unique_ptr<Stream>)>;
  /// Secures a stream that a peer has made, and calls `handler`. Drops the stream if the handshake
  /// fails, with a line in the log.
  virtual void accept(std::unique_ptr<Stream> stream, AcceptHandler handler) = 0;
};

}  // namespace batchrpc
