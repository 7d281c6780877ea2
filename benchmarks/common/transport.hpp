#pragma once

#include <string_view>

namespace batchrpc_benchmarks {

/// tcp: in plain text. tls: TCP secured by the token of this user. inproc: between two nodes of one
/// process.
enum class Transport : unsigned char { tcp, tls, unix_socket, inproc };

/// The names on the command line: "tcp", "tls", "unix", "inproc".
std::string_view to_string(Transport transport);

}  // namespace batchrpc_benchmarks
