#include <batchrpc/batchrpc.hpp>
#include <iostream>

namespace rpc = batchrpc;

// Names nothing of batchrpc::status: to link it is enough.
int main() {
  const rpc::Node node({.name = "server", .status = "127.0.0.1:0"});
  std::cout << "status page at " << node.status_address() << '\n';
  return node.status_address().empty() ? 1 : 0;
}
