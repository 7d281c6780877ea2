#pragma once

#include "common/sockets.hpp"
#include "tensor_benchmark/options.hpp"

namespace tensor_benchmark {

/// Of tcp and unix.
batchrpc_benchmarks::SocketKind socket_kind(Transport transport);

/// A server of the role and the transport that the options name; says to its parent where it is.
/// Until somebody ends it.
int run_child(const Options& options);

}  // namespace tensor_benchmark
