#pragma once

#include "batchrpc/call/node_options.hpp"
#include "transport/transport_set.hpp"

namespace batchrpc {

/// Fills in what `options` leaves to be chosen: name, transports, and for `env://` rank, world size
/// and address. Throws InvalidArgument that names the option and its range.
[[nodiscard]] NodeOptions completed(NodeOptions options);

/// Throws InvalidArgument that names the option when one of its addresses is none of `transports`.
void check_addresses(const NodeOptions& options, const TransportSet& transports);

/// The address at which the root of `options` listens and others join; for `file://` see
/// read_join_file(). Empty: none.
[[nodiscard]] bool joins_by_file(const NodeOptions& options) noexcept;
[[nodiscard]] std::string join_file(const NodeOptions& options);

/// The text of the address that the root has written; empty if there is none yet.
[[nodiscard]] std::string read_join_file(const std::string& path);
/// Atomically. Throws JoinFailed.
void write_join_file(const std::string& path, const std::string& address);

}  // namespace batchrpc
