#pragma once

#include <batchrpc/call/node_options.hpp>
#include <map>
#include <string>

namespace batchrpc_examples {

/// Where a group of processes of this host alone can meet, new with each call; of a Unix socket
/// that is a name that begins with the program's.
std::string new_meeting_place(const std::string& program, batchrpc::TransportChoice transport);

/// The words of --transport: auto, tcp, unix.
const std::map<std::string, batchrpc::TransportChoice>& transports();
/// The word for one of these.
std::string transport_word(batchrpc::TransportChoice transport);

}  // namespace batchrpc_examples
