#include "parameter_server/server_functions.hpp"

#include <batchrpc/torch.hpp>

namespace batchrpc_examples {

namespace rpc = batchrpc;

void expose(const rpc::Node& node, const std::shared_ptr<ParameterServer>& server) {
  node.expose<&ParameterServer::join>();
  node.expose<&ParameterServer::fetch_model>();
  node.expose<&ParameterServer::update_and_fetch_model>();
  node.expose<&ParameterServer::update_by_hand>();
  node.expose<&ParameterServer::report>();
  node.expose<&ParameterServer::keep_result>();
  node.expose<&ParameterServer::leave>();
  node.expose<&ParameterServer::fail>();
  node.expose("find_server", [handle = node.own(server)] { return handle; });
}

rpc::RRef<ParameterServer> find_server(const rpc::Node& node, const std::string& name) {
  return node.call<rpc::RRef<ParameterServer>()>(name, "find_server").get();
}

rpc::Future<void> fetch_model(const rpc::RRef<ParameterServer>& server, const at::Tensor& values) {
  return rpc::call_into<&ParameterServer::fetch_model>(server, values);
}

rpc::Future<void> update_and_fetch_model(const rpc::RRef<ParameterServer>& server, UpdateMode mode,
                                         const at::Tensor& gradient, const at::Tensor& values) {
  if (mode == UpdateMode::sync) {
    return rpc::call_into<&ParameterServer::update_by_hand>(server, values, gradient);
  }
  return rpc::call_into<&ParameterServer::update_and_fetch_model>(server, values, gradient);
}

}  // namespace batchrpc_examples
