#pragma once

#include <memory>
#include <string>

#include "batchrpc/base/export.hpp"

/// What NodeOptions::status is to a node, which has no HTTP server itself.
namespace batchrpc {
class NodeCore;
}  // namespace batchrpc

namespace batchrpc::detail {

/// A node's status page, served until this is destroyed.
class BATCHRPC_EXPORT StatusPage {
 public:
  virtual ~StatusPage();
  /// What a browser opens: "http://127.0.0.1:43211".
  [[nodiscard]] virtual std::string address() const = 0;
};

/// Opens status pages, as batchrpc::status does. Thread-safe: several nodes may share one.
class StatusPageFactory {
 public:
  /// Begins to serve the node's page. Throws InvalidArgument or JoinFailed. The page must not
  /// outlive the node's shutdown.
  [[nodiscard]] virtual std::unique_ptr<StatusPage> open(
      const std::shared_ptr<NodeCore>& node) const = 0;

 protected:
  ~StatusPageFactory() = default;
};

}  // namespace batchrpc::detail
