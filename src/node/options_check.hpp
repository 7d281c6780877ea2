#pragma once

#include "batchrpc/call/node_options.hpp"
#include "transport/transport_set.hpp"

namespace batchrpc {

/// Fills in the options that are not set: name, transports, and for `env://` rank, world size and
/// address. Throws InvalidArgument that names the option and its range.
[[nodiscard]] NodeOptions completed(NodeOptions options);

/// Throws InvalidArgument that names the option if no transport serves its address.
void check_addresses(const NodeOptions& options, const TransportSet& transports);

/// Whether NodeOptions::join is a file (`file://`) that holds the address of the root, and the path
/// of that file.
/// @{
[[nodiscard]] bool joins_by_file(const NodeOptions& options) noexcept;
[[nodiscard]] std::string join_file(const NodeOptions& options);
/// @}

}  // namespace batchrpc
