#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "common/sockets.hpp"
#include "tensor_benchmark/client.hpp"
#include "tensor_benchmark/shape.hpp"

/// The floor: what the transport itself allows, measured by the plainest program that moves the
/// same bytes. Blocking sockets; a header of 16 bytes and the payload, sent by one sendmsg from the
/// tensor's memory and received straight into a buffer that is used again. A server has a message
/// as a whole before it answers. Where echoes overlap, each side reads and writes with two threads.
namespace tensor_benchmark {

/// Answers clients, one after the other, in the calling thread, until the listener is closed.
void serve_floor(const batchrpc_benchmarks::Listener& listener);

/// Sends `tensor`; a view is gathered into a buffer first, the same each time. `check` may throw.
std::unique_ptr<Client> make_floor_client(batchrpc_benchmarks::Socket socket, const Case& which,
                                          const at::Tensor& tensor, Check check);

/// For inproc: one memcpy into a buffer that is used again, and for echoes one back; by the calling
/// thread, one call at a time.
std::unique_ptr<Client> make_memory_floor(const Case& which, const at::Tensor& tensor, Check check);

}  // namespace tensor_benchmark
