#pragma once

#include <batchrpc/batchrpc.hpp>
#include <memory>
#include <vector>

#include "call_benchmark/shape.hpp"
#include "call_benchmark/stretch.hpp"

namespace call_benchmark {

/// Calls kServer from each of `nodes`, which outlive it, `in_flight` at a time. Style::get: one
/// node.
std::unique_ptr<Client> make_node_client(std::vector<const batchrpc::Node*> nodes, int in_flight,
                                         Case which, Handlers handlers, Style style);

}  // namespace call_benchmark
