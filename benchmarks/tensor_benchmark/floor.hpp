#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "common/sockets.hpp"
#include "tensor_benchmark/client.hpp"
#include "tensor_benchmark/shape.hpp"

/// The floor: the speed that the transport itself allows, measured by the simplest program that
/// moves the same bytes. It uses blocking sockets. A 16-byte header and the payload are sent with
/// one sendmsg from the tensor's memory, and received straight into a reused buffer. A server
/// receives a whole message before it answers. If echoes overlap, each side reads and writes with
/// two threads.
namespace tensor_benchmark {

/// Answers clients one after the other on the calling thread, until the listener is closed.
void serve_floor(const batchrpc_benchmarks::Listener& listener);

/// Sends `tensor`. A view is first gathered into a buffer, which is reused. `check` may throw.
std::unique_ptr<Client> make_floor_client(batchrpc_benchmarks::Socket socket, const Case& which,
                                          const at::Tensor& tensor, Check check);

/// For inproc: one memcpy into a reused buffer and, for echoes, one back, on the calling thread,
/// one call at a time.
std::unique_ptr<Client> make_memory_floor(const Case& which, const at::Tensor& tensor, Check check);

}  // namespace tensor_benchmark
