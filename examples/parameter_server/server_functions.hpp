#pragma once

#include <ATen/ATen.h>

#include <batchrpc/batchrpc.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "parameter_server/parameter_server.hpp"

namespace batchrpc_examples {

/// How long trainers and other servers wait for a server.
inline constexpr std::chrono::seconds kServersAreThereWithin{60};

/// Lets trainers find the server and call it. `server` must outlive the node.
void expose(const batchrpc::Node& node, const std::shared_ptr<ParameterServer>& server);

/// The server on that node. Waits for the answer.
batchrpc::RRef<ParameterServer> find_server(const batchrpc::Node& node, const std::string& name);

/// Calls ParameterServer::fetch_model and receives into `values`.
batchrpc::Future<void> fetch_model(const batchrpc::RRef<ParameterServer>& server,
                                   const at::Tensor& values);

/// Calls ParameterServer::update_and_fetch_model, or update_by_hand in mode `sync`, and receives
/// into `values`.
batchrpc::Future<void> update_and_fetch_model(const batchrpc::RRef<ParameterServer>& server,
                                              UpdateMode mode, const at::Tensor& gradient,
                                              const at::Tensor& values);

}  // namespace batchrpc_examples
