#pragma once

#include "common/sockets.hpp"
#include "tensor_benchmark/options.hpp"

namespace tensor_benchmark {

/// The socket kind for tcp or unix.
batchrpc_benchmarks::SocketKind socket_kind(Transport transport);

/// Runs a server with the role and the transport that the options name, and writes its address to
/// the parent. Runs until it is ended.
int run_child(const Options& options);

}  // namespace tensor_benchmark
