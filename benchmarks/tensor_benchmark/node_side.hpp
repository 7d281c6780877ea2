#pragma once

#include <ATen/core/Tensor.h>

#include <batchrpc/batchrpc.hpp>
#include <batchrpc/transport/inproc.hpp>
#include <memory>
#include <string>

#include "tensor_benchmark/client.hpp"
#include "tensor_benchmark/shape.hpp"

/// The measured side: calls between two nodes with the public typed API and futures.
namespace tensor_benchmark {

/// The called node. An echo returns the tensor that it received. Of pushes it keeps the latest, so
/// it frees a tensor's memory when the next one has arrived. `network` is for inproc.
batchrpc::Node start_server(Transport transport, Handlers handlers,
                            std::shared_ptr<batchrpc::InprocNetwork> network = nullptr);

/// The calling node; returns when the server can be called.
batchrpc::Node start_client(Transport transport, const std::string& address,
                            std::shared_ptr<batchrpc::InprocNetwork> network = nullptr);

/// Sends `tensor` from its own memory, with a window of futures of which it waits for the oldest.
/// The result of an echo is dropped at once, or received into the same tensors of the caller each
/// time. Throws std::runtime_error if the first call does not return the tensor's values. The node
/// must outlive the client.
std::unique_ptr<Client> make_node_client(const batchrpc::Node& node, const Case& which,
                                         Receive receive, const at::Tensor& tensor, Check check);

}  // namespace tensor_benchmark
