#pragma once

#include <memory>
#include <string>

#include "batchrpc/base/export.hpp"
#include "batchrpc/node/node.hpp"

namespace batchrpc {

/// Where a status page is served.
struct StatusOptions {
  /// "host:port": a name, an IPv4 address or an IPv6 address in brackets; no host: loopback. Port
  /// 0: any that is free. Nobody is asked who he is, so that addresses other than loopback's are
  /// for networks that are trusted.
  std::string address = "127.0.0.1:0";
};

/// For NodeOptions::status: a page that is there as long as the node, and before it has joined.
///
///     batchrpc::Node node({.name = "agent", .status = batchrpc::status_page("127.0.0.1:8080")});
///     std::cout << node.status_address() << '\n';
///
/// `address`: StatusOptions::address. Throws InvalidArgument if it is none; the node throws
/// JoinFailed if it cannot be listened at.
[[nodiscard]] BATCHRPC_EXPORT std::shared_ptr<const detail::StatusPageFactory> status_page(
    const std::string& address = StatusOptions().address);

/// Serves a node's status page by HTTP: `/` for people, `/status.json`, `/metrics` for Prometheus
/// and `/trace?seconds=n`, which records calls that the node makes and answers
/// (docs/status-page.md). It only reads. Most programs set NodeOptions::status to a status_page()
/// instead.
///
///     batchrpc::StatusServer page(node, {.address = "127.0.0.1:8080"});
///     std::cout << page.address() << '\n';
///
/// Has four threads of its own, which take no signals. May outlive its node: then it says so. A
/// child of fork() serves nothing.
class BATCHRPC_EXPORT StatusServer {
 public:
  /// Throws InvalidArgument (the address is none) or JoinFailed (it cannot be listened at).
  explicit StatusServer(const Node& node, const StatusOptions& options = {});
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  /// What a browser opens: "http://127.0.0.1:43211".
  [[nodiscard]] std::string address() const;

  /// Ends it, what is being answered too. Again, it changes nothing.
  void stop();

 private:
  class Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace batchrpc
