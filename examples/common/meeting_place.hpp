#pragma once

#include <batchrpc/call/node_options.hpp>
#include <map>
#include <string>

namespace batchrpc_examples {

/// A new meeting address for processes of this host. A Unix socket's name begins with the program's
/// name.
std::string new_meeting_place(const std::string& program, batchrpc::TransportChoice transport);

/// The values of --transport: auto, tcp, unix.
const std::map<std::string, batchrpc::TransportChoice>& transports();
/// The word for a transport.
std::string transport_word(batchrpc::TransportChoice transport);

}  // namespace batchrpc_examples
