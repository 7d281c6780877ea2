#pragma once

#include <memory>
#include <string>

#include "batchrpc/base/export.hpp"
#include "batchrpc/node/node.hpp"

namespace batchrpc {

/// Where a status page is served, and to whom. An address that is not loopback needs a token and a
/// certificate; without these, use loopback and an SSH tunnel.
struct StatusOptions {
  /// "host:port", where host is a name, an IPv4 address, or an IPv6 address in brackets. Without a
  /// host it is loopback. Port 0 picks a free port.
  std::string address = "127.0.0.1:0";
  /// Every request needs it: as `Authorization: Bearer TOKEN`, or as the password of any user, for
  /// which a browser asks. Only `/healthz` is open. Letters, digits and `-._~+/=`, at
  /// least 16 of them; make one with `openssl rand -hex 32`. Empty: whoever reaches the page may
  /// read it.
  std::string token{};
  /// Path of a PEM file with the certificate, followed by those that signed it: the page is served
  /// by TLS 1.3 only. Empty: by plain HTTP. The files are read once.
  std::string certificate{};
  /// Path of a PEM file with the private key of `certificate`, without a passphrase.
  std::string key{};
};

/// Returns a page for NodeOptions::status. It exists as long as the node, even before the node has
/// joined.
///
///     batchrpc::Node node(
///         {.name = "agent", .status = batchrpc::status_page({.address = "127.0.0.1:8080"})});
///     std::cout << node.status_address() << '\n';
///
/// Throws InvalidArgument for an option that cannot be used. The node throws InvalidArgument if the
/// address is not loopback and has no token or certificate, and JoinFailed if it cannot listen
/// there.
[[nodiscard]] BATCHRPC_EXPORT std::shared_ptr<const detail::StatusPageFactory> status_page(
    const StatusOptions& options = {});

/// Serves a node's status page by HTTP (docs/status-page.md): `/` for people, `/status.json`,
/// `/metrics` for Prometheus, `/healthz`, and `/trace?seconds=n`, which records calls that the node
/// makes and answers. The page changes nothing in the node. Most programs set NodeOptions::status
/// to a status_page() instead.
///
///     batchrpc::StatusServer page(node, {.address = "127.0.0.1:8080"});
///     std::cout << page.address() << '\n';
///
/// It has four threads of its own, which take no signals. It may outlive its node, and then reports
/// that the node is gone. It serves nothing in a child of fork().
class BATCHRPC_EXPORT StatusServer {
 public:
  /// Throws InvalidArgument (an option cannot be used) or JoinFailed (it cannot listen there).
  explicit StatusServer(const Node& node, const StatusOptions& options = {});
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  /// The URL for a browser: "http://127.0.0.1:43211"; with a certificate, "https://…".
  [[nodiscard]] std::string address() const;

  /// Stops serving, including requests in progress. Calling it again does nothing.
  void stop();

 private:
  class Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace batchrpc
