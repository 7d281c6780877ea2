#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/base/log.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/transport/loop.hpp"
#include "node/listening.hpp"
#include "node/node_identity.hpp"
#include "peers/member.hpp"
#include "transport/transport_set.hpp"

namespace batchrpc {

/// The transports of a node, the addresses at which others reach it, and its choice among the
/// addresses of others. Thread-safe.
class NodeAddresses {
 public:
  /// Throws InvalidArgument when no transport serves an address of the options. `options` and
  /// `identity` must outlive this.
  NodeAddresses(const NodeOptions& options, const NodeIdentity& identity,
                const std::shared_ptr<Loop>& loop, const Log& log);

  [[nodiscard]] TransportSet& transports() noexcept { return transports_; }
  [[nodiscard]] Listening& listening() noexcept { return listening_; }
  [[nodiscard]] const Listening& listening() const noexcept { return listening_; }

  /// As StreamSecurity.
  [[nodiscard]] std::optional<std::chrono::seconds> certificate_time_left() const {
    return security_ ? security_->certificate_time_left() : std::nullopt;
  }

  /// Returns the node as it introduces itself to its group.
  [[nodiscard]] Member self() const;
  /// Returns the addresses by which this node can reach the member, the best first.
  [[nodiscard]] std::vector<std::string> usable(const Member& member) const;
  /// Returns a better address of the member than `used`, by which it was reached. Empty: there is
  /// none.
  [[nodiscard]] std::string better(const Member& member, const std::string& used) const;

 private:
  [[nodiscard]] bool is_on_this_host(const Member& member) const;

  const NodeOptions& options_;
  const NodeIdentity& identity_;
  const std::string host_;
  const std::shared_ptr<StreamSecurity> security_;  // null: insecure
  TransportSet transports_;
  Listening listening_;
};

}  // namespace batchrpc
