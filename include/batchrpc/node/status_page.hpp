#pragma once

#include <memory>
#include <string>

#include "batchrpc/base/export.hpp"

/// How NodeOptions::status is honoured without an HTTP server in the core.
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

/// What serves status pages. Stateless.
class StatusFactory {
 public:
  /// Begins to serve one at `address` (StatusOptions::address). Throws InvalidArgument or
  /// JoinFailed. Must not outlive a shutdown of the node.
  [[nodiscard]] virtual std::unique_ptr<StatusPage> open(const std::shared_ptr<NodeCore>& node,
                                                         const std::string& address) const = 0;

 protected:
  ~StatusFactory() = default;
};

}  // namespace batchrpc::detail

#ifndef DOXYGEN  // which takes the attribute for something else
/// That of batchrpc::status; absent, and so null, in programs without it.
extern "C" __attribute__((weak)) BATCHRPC_EXPORT const batchrpc::detail::StatusFactory*
batchrpc_status_factory() noexcept;
#endif
