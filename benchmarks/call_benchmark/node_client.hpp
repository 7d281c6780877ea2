#pragma once

#include <batchrpc/batchrpc.hpp>
#include <memory>
#include <vector>

#include "call_benchmark/shape.hpp"
#include "call_benchmark/stretch.hpp"

namespace call_benchmark {

/// A client that calls kServer from each of `nodes`, `in_flight` calls at a time. The nodes must
/// outlive it. Style::get needs exactly one node.
std::unique_ptr<Client> make_node_client(std::vector<const batchrpc::Node*> nodes, int in_flight,
                                         Case which, Handlers handlers, Style style);

}  // namespace call_benchmark
