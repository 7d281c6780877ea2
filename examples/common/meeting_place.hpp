#pragma once

#include <batchrpc/transport/transport_factory.hpp>
#include <map>
#include <string>
#include <vector>

namespace batchrpc_examples {

/// Which sockets the processes of a program use: a Unix socket between those of one host and else
/// TCP, or one of the two alone.
enum class TransportChoice : unsigned char { automatic, tcp, unix_socket };

/// For NodeOptions::transports of a node that joins at `join`: the sockets of the choice, and TCP
/// beside Unix sockets where the group meets at a TCP address.
std::vector<batchrpc::TransportFactory> transports_of(TransportChoice choice,
                                                      const std::string& join);

/// Where a group of processes of this host alone can meet, new with each call; of a Unix socket
/// that is a name that begins with the program's.
std::string new_meeting_place(const std::string& program, TransportChoice transport);

/// The words of --transport: auto, tcp, unix.
const std::map<std::string, TransportChoice>& transports();
/// The word for one of these.
std::string transport_word(TransportChoice transport);

}  // namespace batchrpc_examples
