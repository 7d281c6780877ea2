#include "parameter_server/server_functions.hpp"

#include <batchrpc/torch.hpp>

namespace batchrpc_examples {

namespace rpc = batchrpc;

namespace {

using FindServer = rpc::RRef<ParameterServer>();
using Fetch = at::Tensor();
using Update = at::Tensor(at::Tensor);

}  // namespace

void expose(const rpc::Node& node, const std::shared_ptr<ParameterServer>& server) {
  node.expose<&ParameterServer::join>();
  node.expose<&ParameterServer::report>();
  node.expose<&ParameterServer::leave>();
  node.expose("fetch_model", [server] { return server->fetch_model(); });
  node.expose("update_by_hand",
              [server](const at::Tensor& gradient) { return server->update_by_hand(gradient); });
  node.expose("update_and_fetch_model", server->update_and_fetch_model);
  node.expose("find_server", [handle = node.own(server)] { return handle; });
}

rpc::RRef<ParameterServer> find_server(const rpc::Node& node, const std::string& name) {
  return node.call<FindServer>(name, "find_server").get();
}

rpc::Future<void> fetch_model(const rpc::Node& node, const rpc::RRef<ParameterServer>& server,
                              const at::Tensor& values) {
  return rpc::call_into<Fetch>(node, values, server.owner(), "fetch_model");
}

rpc::Future<void> update_and_fetch_model(const rpc::Node& node,
                                         const rpc::RRef<ParameterServer>& server, UpdateMode mode,
                                         const at::Tensor& gradient, const at::Tensor& values) {
  const char* function = mode == UpdateMode::sync ? "update_by_hand" : "update_and_fetch_model";
  return rpc::call_into<Update>(node, values, server.owner(), function, gradient);
}

}  // namespace batchrpc_examples
