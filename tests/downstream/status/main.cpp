#include <batchrpc/status.hpp>
#include <iostream>

namespace rpc = batchrpc;

int main() {
  const rpc::Node node({.name = "server", .status = rpc::status_page()});
  std::cout << "status page at " << node.status_address() << '\n';
  return node.status_address().empty() ? 1 : 0;
}
