#include <batchrpc/batchrpc.hpp>
#include <iostream>

namespace rpc = batchrpc;

int add(int a, int b) { return a + b; }

int main() {
  rpc::Node server({.name = "server"});
  server.expose<&add>();
  rpc::Node client({.name = "client", .rank = -1, .join = server.address()});
  std::cout << "1 + 2 = " << client.call<&add>("server", 1, 2).get() << '\n';
}
