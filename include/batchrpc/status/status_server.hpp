#pragma once

#include <memory>
#include <string>

#include "batchrpc/base/export.hpp"
#include "batchrpc/node/node.hpp"

namespace batchrpc {

/// Where a status page is served.
struct StatusOptions {
  /// "host:port", where host is a name, an IPv4 address, or an IPv6 address in brackets. Without a
  /// host it is loopback. Port 0 picks a free port. There is no authentication: use addresses other
  /// than loopback's only on trusted networks.
  std::string address = "127.0.0.1:0";
};

/// Returns a page for NodeOptions::status. It exists as long as the node, even before the node has
/// joined.
///
///     batchrpc::Node node({.name = "agent", .status = batchrpc::status_page("127.0.0.1:8080")});
///     std::cout << node.status_address() << '\n';
///
/// `address` is as in StatusOptions::address. Throws InvalidArgument if it is not an address; the
/// node throws JoinFailed if it cannot listen there.
[[nodiscard]] BATCHRPC_EXPORT std::shared_ptr<const detail::StatusPageFactory> status_page(
    const std::string& address = StatusOptions().address);

/// Serves a node's status page by HTTP (docs/status-page.md): `/` for people, `/status.json`,
/// `/metrics` for Prometheus, and `/trace?seconds=n`, which records calls that the node makes and
/// answers. The page changes nothing in the node. Most programs set NodeOptions::status to a
/// status_page() instead.
///
///     batchrpc::StatusServer page(node, {.address = "127.0.0.1:8080"});
///     std::cout << page.address() << '\n';
///
/// It has four threads of its own, which take no signals. It may outlive its node, and then reports
/// that the node is gone. It serves nothing in a child of fork().
class BATCHRPC_EXPORT StatusServer {
 public:
  /// Throws InvalidArgument (not an address) or JoinFailed (it cannot listen there).
  explicit StatusServer(const Node& node, const StatusOptions& options = {});
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  /// The URL for a browser: "http://127.0.0.1:43211".
  [[nodiscard]] std::string address() const;

  /// Stops serving, including requests in progress. Calling it again does nothing.
  void stop();

 private:
  class Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace batchrpc
