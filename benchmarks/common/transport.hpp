#pragma once

#include <string_view>

namespace batchrpc_benchmarks {

/// inproc: between two nodes of one process.
enum class Transport : unsigned char { tcp, unix_socket, inproc };

/// The names on the command line: "tcp", "unix", "inproc".
std::string_view to_string(Transport transport);

}  // namespace batchrpc_benchmarks
