#pragma once

#include <ATen/core/Tensor.h>

#include <batchrpc/batchrpc.hpp>
#include <batchrpc/transport/inproc.hpp>
#include <memory>
#include <string>

#include "tensor_benchmark/client.hpp"
#include "tensor_benchmark/shape.hpp"

/// What is measured: calls between two nodes, by the public typed API and futures.
namespace tensor_benchmark {

/// The node that is called. It gives an echo the tensor that it took; of pushes it keeps the
/// latest, and so gives back the memory of the one before when the next has come. `network`: of
/// inproc.
batchrpc::Node start_server(Transport transport, Handlers handlers,
                            std::shared_ptr<batchrpc::InprocNetwork> network = nullptr);

/// The node that calls; returns when the server can be called.
batchrpc::Node start_client(Transport transport, const std::string& address,
                            std::shared_ptr<batchrpc::InprocNetwork> network = nullptr);

/// Sends `tensor` from where it lies. A window of futures, the oldest of which is waited for. What
/// an echo brings is dropped at once, or is in the same tensors of the caller each time. Throws
/// std::runtime_error unless the first call brings the tensor's values to where they belong. The
/// node outlives it.
std::unique_ptr<Client> make_node_client(const batchrpc::Node& node, const Case& which,
                                         Receive receive, const at::Tensor& tensor, Check check);

}  // namespace tensor_benchmark
